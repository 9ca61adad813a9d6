target "harvester" {
  driver = "harvester"
}
