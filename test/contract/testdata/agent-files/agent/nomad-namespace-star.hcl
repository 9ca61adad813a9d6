nomad {
  namespace = ["a", "*"]
}
target "harvester" {
  driver = "harvester"
}
