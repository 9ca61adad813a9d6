# SPDX-License-Identifier: Apache-2.0
# A second pool, of an AWS Auto Scaling group, for the work for which the pool of policy-demand.hcl
# has no place: HashiCorp's target aws-asg, with the query of this plugin. The agent's part is the apm
# block of overflow.hcl, and
#   target "aws-asg" {
#     driver = "aws-asg"
#     config = { aws_region = "eu-central-1" }
#   }
#
# Jobs must be allowed on both pools, and prefer the first one:
#   datacenters = ["dc1", "aws"]
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
    cooldown            = "2m"
    evaluation_interval = "10s"
    on_check_error      = "fail"

    # The nodes are those of the target below. namespace, pool and max are those of the first pool,
    # in policy-demand.hcl.
    check "overflow" {
      source = "demand"
      query  = "overflow node_class=batch node_pool=default datacenter=aws namespace=nomad pool=batch max=10 idle_for=15m node=(cpu=10000,memory=16000,disk=30000)"

      strategy "pass-through" {}
    }

    # The clients of the group's instances have these in their configuration.
    target "aws-asg" {
      aws_asg_name = "nomad-batch"

      node_class = "batch"
      node_pool  = "default"
      datacenter = "aws"

      # A scale-in removes nodes without work, and no other: those that the query does not count.
      node_selector_strategy        = "empty_ignore_system"
      node_drain_ignore_system_jobs = "true"
      node_purge                    = "true"

      # "true": log the plan, and change nothing.
      dry-run = "true"
    }
  }
}
