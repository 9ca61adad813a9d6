log_level  = "DEBUG"
log_json   = true
plugin_dir = "[[.PluginDir]]"

http {
  bind_address = "127.0.0.1"
  bind_port    = [[.AgentPort]]
}

nomad {
  address = "[[.NomadURL]]"
  token   = "[[.NomadToken]]"
}

policy {
  dir = "[[.PolicyDir]]"
  source "nomad" {
    enabled = false
  }
}

apm "prometheus" {
  driver = "prometheus"
  config = {
    address = "[[.MetricsURL]]"
  }
}

strategy "pass-through" {
  driver = "pass-through"
}

target "harvester" {
  driver = "harvester"
  config = {
    harvester_url     = "[[.HarvesterURL]]"
    harvester_ca_cert = "[[.HarvesterCA]]"
    auth_token_file   = "[[.HarvesterTokenFile]]"
  }
}
