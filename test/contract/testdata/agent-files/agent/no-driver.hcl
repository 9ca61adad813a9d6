target "harvester" {
}
