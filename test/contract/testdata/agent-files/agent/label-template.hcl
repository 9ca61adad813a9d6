target "a${1}" {
  driver = "harvester"
}
