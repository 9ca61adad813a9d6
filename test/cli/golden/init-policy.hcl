# SPDX-License-Identifier: Apache-2.0
# The pool prod/web: between 0 and 10 VMs. The agent reads every file of its policy directory.
# Agents up to 0.5.0 do not reload a changed policy file: restart the agent.
scaling "web" {
  enabled = true
  type    = "cluster"
  min     = 0
  max     = 10

  policy {
    cooldown            = "1m"
    evaluation_interval = "10s"
    on_check_error      = "fail"

    # As many VMs as the work in Nomad needs: docs/demand.md has the query's grammar. With
    # headroom=1x(cpu=500,memory=1024) in it, there is always room for so much more, and the pool
    # never goes to zero.
    check "nodes-needed" {
      source = "demand"
      query  = "nodes-needed node_class=web node_pool=default datacenter=dc1 idle_for=10m"

      strategy "pass-through" {}
    }

    # Or by metrics in Prometheus, in place of the check above:
    #
    # As many VMs as the jobs batch-* need, with four allocations each. Queued allocations exist
    # without a node, so that the pool scales from zero and to zero. The source must be set: a check
    # without one uses nomad-apm, which does not support empty pools and raises min to 1.
    #
    # Without demand the result is 0; without metrics there must be no result, because 0 would
    # drain the pool. That is the purpose of the last line. Nomad's leader always reports how many
    # jobs run, even if none does. While it does not, because the servers, their leader, their
    # telemetry or the scraping is missing, the query has no result, the evaluation ends with an
    # error, and nothing is scaled. up{job="nomad"} is not sufficient: clients and servers without a
    # leader are up as well.
    #
    # Needs telemetry { prometheus_metrics = true } on every Nomad server, and in Prometheus a job
    # that scrapes /v1/metrics?format=prometheus of every server. By default (honor_labels = false)
    # Prometheus renames Nomad's label "job" to "exported_job".
    #
    # max: for some time after an election the old leader still reports its last values.
    # check "allocations" {
    #   source = "prometheus"
    #   query  = <<-EOQ
    #     ceil((sum(max by (__name__, namespace, exported_job, task_group) ({
    #       __name__=~"nomad_nomad_job_summary_(queued|starting|running)", exported_job=~"batch-.*"
    #     })) or vector(0)) / 4)
    #     and on() nomad_nomad_job_status_running
    #   EOQ
    #
    #   strategy "pass-through" {}
    # }

    # docs/configuration.md has every key. All values are strings.
    target "harvester" {
      # VMs: those of this pool in this namespace of Harvester.
      node_group_name = "web"
      namespace       = "prod"

      # Nodes: those that match all of these keys. cloud-init.yaml sets the same values in each VM's
      # Nomad client.
      node_class = "web"
      node_pool  = "default"
      datacenter = "dc1"

      # The VM spec. A template of Harvester can be its base, and the keys then override it; image,
      # cpu_request, memory_request and networks may be left out:
      #   vm_template = "default/nomad-worker:3"
      image          = "images/debian-12"
      cpu_request    = "4"
      memory_request = "8Gi"
      disk_size      = "42Gi"
      networks       = "prod/vlan7"
      user_data_file = "/etc/pool/cloud-init.yaml"
      ssh_keys       = "prod/alice"

      # If the servers enforce client introduction (Nomad 1.11 and newer): a token for each new VM,
      # which user data hands to Nomad: docs/configuration.md, "Introduction tokens".
      # nomad_intro_token = "required"

      # In Harvester: VM names web-<random>, labels, and tags shown in lists.
      name_prefix = "web"
      # labels    = "team=data,environment=production"
      tags        = "nomad-pool=web"

      # Scaling out: the pool is ready again once the Nomad node of each new VM is; a VM that is not
      # ready after ten minutes is removed. At most five VMs are created per action.
      join_timeout    = "10m"
      on_join_timeout = "delete"
      max_scale_out   = "5"

      # Scaling in: nodes without work are removed, and no others. What is placed there meanwhile has
      # 15 minutes to move and 5 more to stop; then the VM is deleted even if it still runs.
      node_selector_strategy        = "empty_ignore_system"
      node_drain_deadline           = "15m"
      node_drain_ignore_system_jobs = "true"
      drain_grace                   = "5m"
      force_after_deadline          = "true"
      node_purge                    = "true"
      max_scale_in                  = "2"

      # Remove only VMs whose work has a place on the pool's other nodes. By default, the log tells
      # which work may wait.
      # scale_in_fit = "require"

      # "true": log the plan, and change nothing. Set "false" once you agree with the plans in the
      # agent's log, and restart the agent.
      dry-run = "true"
    }
  }
}
