nomad {
  address = "http://a"
  region = "a"
}
target "harvester" {
  driver = "harvester"
  config = {
    a = "1"
    b = "2"
  }
}
