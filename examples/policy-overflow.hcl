# SPDX-License-Identifier: Apache-2.0
# A second pool, on another Harvester, for the work for which the pool of policy-demand.hcl has no
# place. The agent's part is overflow.hcl; docs/demand.md has the query.
#
# Jobs must be allowed on both pools, and prefer the first one:
#   datacenters = ["dc1", "dc2"]
#   affinity {
#     attribute = "${node.datacenter}"
#     value     = "dc1"
#     weight    = 100
#   }
scaling "batch-overflow" {
  enabled = true
  type    = "cluster"
  min     = 0
  max     = 5

  policy {
    cooldown            = "1m"
    evaluation_interval = "10s"
    on_check_error      = "fail"

    # The nodes are those of the target below. namespace, pool and max are those of the first pool,
    # in policy-demand.hcl.
    check "overflow" {
      source = "demand"
      query  = "overflow node_class=batch node_pool=default datacenter=dc2 namespace=nomad pool=batch max=10 idle_for=10m"

      strategy "pass-through" {}
    }

    # The rest of its keys: policy.hcl.
    target "harvester-b" {
      node_group_name = "batch-overflow"
      namespace       = "nomad"

      node_class = "batch"
      node_pool  = "default"
      datacenter = "dc2"

      image          = "default/ubuntu-24.04"
      cpu_request    = "4"
      memory_request = "8Gi"
      disk_size      = "40Gi"
      networks       = "default/vlan10"
      user_data_file = "/etc/nomad-autoscaler/cloud-init.yaml"
      ssh_keys       = "default/operators"

      node_selector_strategy = "empty_ignore_system"
      node_purge             = "true"

      # "true": log the plan, and change nothing.
      dry-run = "true"
    }
  }
}
