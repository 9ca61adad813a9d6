# SPDX-License-Identifier: Apache-2.0
# The pool of policy.hcl with as many nodes as the work in Nomad needs: no Prometheus. The source of
# the check is in apm.hcl; docs/demand.md has the grammar of the query.
scaling "batch-workers" {
  enabled = true
  type    = "cluster"
  min     = 0
  max     = 10

  policy {
    cooldown            = "1m"
    evaluation_interval = "10s"
    on_check_error      = "fail"

    # The identity of the nodes is that of the target below. One allocation of 500 MHz and 1 GiB
    # always finds room at once, so that the pool never goes to zero; without headroom it does, ten
    # minutes after its last work.
    check "nodes-needed" {
      source = "demand"
      query  = "nodes-needed node_class=batch node_pool=default datacenter=dc1 headroom=1x(cpu=500,memory=1024) idle_for=10m"

      strategy "pass-through" {}
    }

    # The rest of its keys: policy.hcl.
    target "harvester" {
      node_group_name = "batch"
      namespace       = "nomad"

      node_class = "batch"
      node_pool  = "default"
      datacenter = "dc1"

      image          = "default/ubuntu-24.04"
      cpu_request    = "4"
      memory_request = "8Gi"
      disk_size      = "40Gi"
      networks       = "default/vlan10"
      user_data_file = "/etc/nomad-autoscaler/cloud-init.yaml"
      ssh_keys       = "default/operators"

      # A scale-in removes nodes without work, and no other: those that the query does not count.
      node_selector_strategy = "empty_ignore_system"
      node_purge             = "true"

      # "true": log the plan, and change nothing.
      dry-run = "true"
    }
  }
}
