nomad {
  namespace = ["a", " b ", "a", ""]
  http_auth = "user:"
  skip_verify = "0"
}
target "harvester" {
  driver = "harvester"
}
