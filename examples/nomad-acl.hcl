# SPDX-License-Identifier: Apache-2.0
# Everything that the token of the autoscaler may do in Nomad, the agent's part and the plugin's:
#   nomad acl policy apply nomad-autoscaler nomad-acl.hcl
#   nomad acl token create -name=nomad-autoscaler -policy=nomad-autoscaler
# The Secret ID is the agent's NOMAD_TOKEN, which the plugin inherits.

# The plugin: drains, eligibility, purges of nodes, introduction tokens, metadata of publish_host.
node {
  policy = "write"
}

namespace "*" {
  # The agent: the scaling policies of jobs, and their counts. Nothing of it is for a pool of VMs.
  policy = "scale"

  # The plugin: the allocations of every namespace, and for its APM the jobs. Nomad hides those that
  # the token may not read, so that a busy node would look empty.
  capabilities = ["read-job", "list-jobs"]

  # Two agents of which one is active (high_availability): their lock, a variable. Not in a block of
  # its namespace: of several blocks that match, Nomad uses the closest alone, and allocations of that
  # namespace would be hidden.
  variables {
    path "nomad-autoscaler/lock" {
      capabilities = ["read", "write"]
    }
  }
}

# nomad-harvester check reads the versions of the servers. It goes without.
agent {
  policy = "read"
}

# Optional: nomad-harvester check reads whether the policy's node_pool exists.
# node_pool "*" {
#   policy = "read"
# }
