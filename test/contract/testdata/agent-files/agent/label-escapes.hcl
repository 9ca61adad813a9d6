target "a$${1}\n%%{x}" {
  driver = "harvester"
}
