nomad {}
nomad {}
target "harvester" {
  driver = "harvester"
}
