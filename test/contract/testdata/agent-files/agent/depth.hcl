target "harvester" {
  driver = "harvester"
  config = { a = ((((((((((((((((((((1)))))))))))))))))))) }
}
