nomad {
  namespace = ["a", "a "]
}
target "harvester" {
  driver = "harvester"
}
