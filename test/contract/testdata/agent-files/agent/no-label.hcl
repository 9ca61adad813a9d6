target {
  driver = "harvester"
}
