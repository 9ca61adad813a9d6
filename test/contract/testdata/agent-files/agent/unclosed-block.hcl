target "harvester" {
  driver = "harvester"
