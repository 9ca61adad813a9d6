scaling "web" {
  enabled = true
  max = 5
  policy {
  }
}
