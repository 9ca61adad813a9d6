nomad {
  address = "https://nomad:4646"
  region = "eu"
  namespace = "a"
  token = "t"
  http_auth = "user:pass:word"
  ca_cert = "c"
  ca_path = "p"
  client_cert = "cc"
  client_key = "k"
  tls_server_name = "s"
  skip_verify = true
  block_query_wait_time = "90s"
}
target "harvester" {
  driver = "harvester"
  config = {
    nomad_region = ""
    nomad_token = "own"
  }
}
target "alone" {
  driver = "harvester"
  config = {
    nomad_config_inherit = "false"
  }
}
