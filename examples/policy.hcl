# SPDX-License-Identifier: Apache-2.0
# A pool of batch workers between 0 and 10 VMs. The agent reads every file of its policy directory.
# Agents up to 0.5.0 do not reread a policy file that changes: restart the agent.
scaling "batch-workers" {
  enabled = true
  type    = "cluster"
  min     = 0
  max     = 10

  policy {
    cooldown            = "5m"
    evaluation_interval = "10s"

    # As many VMs as the jobs batch-* need, four allocations on each. Queued allocations exist
    # without a node, so that this works from zero and back to it. The source must be named: a check
    # without one is a check of nomad-apm, which knows no empty pool and forces min to 1.
    #
    # No demand is 0, but no metrics must be no answer: 0 would drain the pool. Hence the last line.
    # Nomad's leader always reports how many jobs run, be it none; while it does not, because the
    # servers, their leader, their telemetry or the scraping of them is missing, the query yields
    # nothing, the evaluation ends with an error, and nothing is scaled. up{job="nomad"} would not
    # do: clients are up as well, and so are servers that have no leader.
    #
    # max: for a while after an election the old leader goes on reporting what it counted last.
    check "allocations" {
      source = "prometheus"
      query  = <<-EOQ
        ceil((sum(max by (__name__, namespace, exported_job, task_group) ({
          __name__=~"nomad_nomad_job_summary_(queued|starting|running)", exported_job=~"batch-.*"
        })) or vector(0)) / 4)
        and on() nomad_nomad_job_status_running
      EOQ

      strategy "pass-through" {}
    }

    # docs/configuration.md has every key. All values are strings.
    target "harvester" {
      # Which VMs: those of this pool in this namespace of Harvester.
      node_group_name = "batch"
      namespace       = "nomad"

      # Which nodes: those that match all that is given here. cloud-init.yaml tells each VM's Nomad
      # client the same values.
      node_class = "batch"
      node_pool  = "default"
      datacenter = "dc1"

      # What a VM is made of.
      image          = "default/ubuntu-24.04"
      cpu_request    = "4"
      memory_request = "8Gi"
      disk_size      = "40Gi"
      networks       = "default/vlan10"
      user_data_file = "/etc/nomad-autoscaler/cloud-init.yaml"
      ssh_keys       = "default/operators"

      # How VMs look in Harvester: names batch-<random>, labels and tags for its lists.
      name_prefix = "batch"
      labels      = "team=data,environment=production"
      tags        = "nomad-pool=batch"

      # Scaling out: a VM is delivered once its node is in Nomad; one that has not come after ten
      # minutes is removed. At most five are made in one go.
      wait_for        = "nomad"
      join_timeout    = "10m"
      on_join_timeout = "delete"
      max_scale_out   = "5"

      # Scaling in: the least busy nodes go first. Their allocations have 15 minutes to move, 5 more
      # to stop; then the VM is deleted whatever still runs.
      node_selector_strategy        = "least_busy"
      node_drain_deadline           = "15m"
      node_drain_ignore_system_jobs = "true"
      drain_grace                   = "5m"
      force_after_deadline          = "true"
      node_purge                    = "true"
      max_scale_in                  = "2"

      # Limit of one action; what is unfinished then goes on in the background.
      scale_timeout = "1h"

      # "true": log what would be done, and do nothing.
      dry-run = "false"
    }
  }
}
