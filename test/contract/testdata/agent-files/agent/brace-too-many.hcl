target "harvester" {
  driver = "harvester"
}
}
