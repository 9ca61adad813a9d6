target "harvester" {
  driver = "harvester"
  config {
    a = "b"
  }
}
