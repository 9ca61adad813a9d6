nomad {
  region = ""
}
target "harvester" {
  driver = "harvester"
}
