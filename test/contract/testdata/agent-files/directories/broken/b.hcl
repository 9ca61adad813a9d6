target "harvester" {
