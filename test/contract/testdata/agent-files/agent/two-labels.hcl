target "a" "b" {
  driver = "harvester"
}
