nomad {
  region = 5
  token = true
  skip_verify = "yes"
}
target "harvester" {
  driver = "harvester"
}
