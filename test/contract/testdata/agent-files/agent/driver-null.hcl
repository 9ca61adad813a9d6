target "harvester" {
  driver = null
}
