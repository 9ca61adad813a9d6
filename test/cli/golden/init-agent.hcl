# SPDX-License-Identifier: Apache-2.0
# The autoscaler's agent with the Harvester plugin: nomad-autoscaler agent -config agent.hcl
#
# The executable must be /opt/plugins/harvester: the agent looks for
# <plugin_dir>/<driver>, and the agent's user must be allowed to execute it.
plugin_dir = "/opt/plugins"

# Of the agent's log, which has the plugin's lines.
log_level = "INFO"

# The agent's connection to Nomad. The plugin inherits it, key by key; what is not here comes from
# NOMAD_ADDR, NOMAD_TOKEN, NOMAD_CACERT … of the agent's environment. The token needs
#   node { policy = "write" }
#   namespace "*" { capabilities = ["read-job", "list-jobs"] }
# for the plugin, in addition to what the agent itself needs.
nomad {
  address = "https://nomad.example.com:4646"
}

policy {
  dir = "/etc/pool/policies"
}

# How many nodes the work in Nomad needs, for the policies' checks (docs/demand.md).
apm "demand" {
  driver = "harvester"
  args   = ["apm"]
}

# Metrics. The built-in nomad-apm only reads the nodes of a pool, so that it cannot request the
# first node of an empty pool: a pool that scales to zero needs another source.
apm "prometheus" {
  driver = "prometheus"

  config = {
    address = "http://127.0.0.1:9090"
  }
}

strategy "pass-through" {
  driver = "pass-through"
}

# docs/configuration.md has every key. All values are strings.
target "harvester" {
  driver = "harvester"

  config = {
    # HARVESTER_KUBECONFIG or HARVESTER_URL in the agent's environment take precedence.
    harvester_kubeconfig = "/root/harvester.kubeconfig"

    # For a workload identity, whose token expires and is renewed in this file:
    # nomad_token_file = "/secrets/nomad_token"

    request_timeout = "10s"
    max_concurrency = "10"
  }
}
