target "harvester" {
  driver = "harvester"
  confg = {}
}
