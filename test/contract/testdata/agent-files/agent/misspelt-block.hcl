tagret "harvester" {
  driver = "harvester"
}
