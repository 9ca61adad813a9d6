http { bind_port = 8080 }
nomad {}
target harvester { driver = "harvester" }
