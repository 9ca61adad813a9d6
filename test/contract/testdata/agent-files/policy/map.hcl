scaling "web" {
  enabled = true
  max = 5
  policy {
    target "harvester" {
      labels = { a = "b" }
    }
  }
}
