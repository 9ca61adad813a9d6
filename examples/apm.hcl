# SPDX-License-Identifier: Apache-2.0
# The source of the check in policy-demand.hcl, beside agent.hcl:
#   nomad-autoscaler agent -config agent.hcl -config apm.hcl
#
# A process of its own, which needs no access to Harvester. It inherits the agent's block nomad,
# whose token needs, besides what agent.hcl says,
#   namespace "*" { capabilities = ["read-job", "list-jobs"] }
apm "demand" {
  driver = "harvester"
  args   = ["apm"]
}
