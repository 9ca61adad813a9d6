# SPDX-License-Identifier: Apache-2.0
# For the agent whose second pool takes the work for which the first one has no place, in the place of
# apm.hcl:
#   nomad-autoscaler agent -config agent.hcl -config overflow.hcl
#
# The first pool is that of policy-demand.hcl on the Harvester of agent.hcl. The second one is that
# of policy-overflow.hcl on another Harvester, or of policy-overflow-aws.hcl.
apm "demand" {
  driver = "harvester"
  args   = ["apm"]

  # The first Harvester, as in agent.hcl: the query overflow asks it for the pool's VMs and for the
  # room on its hosts. The token only reads, and needs the optional ClusterRole of rbac.yaml.
  config = {
    harvester_url     = "https://10.0.0.10:6443"
    harvester_ca_cert = "/etc/nomad-autoscaler/harvester-ca.pem"
    auth_token_file   = "/etc/nomad-autoscaler/harvester.token"
  }
}

# The second Harvester. Leave it out with policy-overflow-aws.hcl. HARVESTER_URL and HARVESTER_TOKEN
# must not be in the agent's environment: they would take precedence in every block.
target "harvester-b" {
  driver = "harvester"

  config = {
    harvester_url     = "https://10.1.0.10:6443"
    harvester_ca_cert = "/etc/nomad-autoscaler/harvester-b-ca.pem"
    auth_token_file   = "/etc/nomad-autoscaler/harvester-b.token"
  }
}
