target "nomad-target" {
  driver = "harvester"
  config = { a = "b" }
}
