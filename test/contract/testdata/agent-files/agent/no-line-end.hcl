target "harvester" {
  driver = "harvester"
}