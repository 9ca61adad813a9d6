scaling "web" {
  enabled = "true"
  max = 5
  policy {
    target "harvester" {
      a = "b"
      max_scale_out = 5
      dry-run = true
      min = 1.50
    }
  }
}
