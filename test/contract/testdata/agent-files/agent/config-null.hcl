target "harvester" {
  driver = "harvester"
  config = null
}
