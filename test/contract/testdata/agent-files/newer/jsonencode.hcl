scaling "web" {
  enabled = true
  max = 5
  policy {
    target "harvester" {
      a = jsonencode({ b = 1 })
    }
  }
}
