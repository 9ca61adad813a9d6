# SPDX-License-Identifier: Apache-2.0
# The autoscaler as a job of the cluster that it scales, with the other files of this directory:
#   nomad acl policy apply -namespace default -job autoscaler nomad-autoscaler nomad-acl.hcl
#   nomad var put nomad/jobs/autoscaler token=@harvester.token ca=@harvester-ca.pem
#   nomad job run autoscaler.nomad.hcl
#
# With the plugin in the agent's image (agent.Dockerfile), leave out artifact and plugin_dir. pack/ has the
# same job with variables.
#
# Two allocations, of which one is active: the agents' lock elects it. The plugin is the executable of
# a release; it is static, and needs nothing from the agent's image. It finds its own node by
# NOMAD_ALLOC_ID and never removes it.
job "autoscaler" {
  type = "service"

  group "autoscaler" {
    count = 2

    # Not on the machines that come and go.
    constraint {
      attribute = "${node.class}"
      operator  = "!="
      value     = "batch"
    }
    constraint {
      operator = "distinct_hosts"
      value    = "true"
    }

    network {
      port "http" {}
    }

    task "agent" {
      driver = "docker"

      config {
        image = "hashicorp/nomad-autoscaler:0.5.0"
        args = [
          "agent",
          "-config", "/etc/nomad-autoscaler/agent.hcl",
          "-config", "/etc/nomad-autoscaler/job.hcl",
        ]
        ports = ["http"]

        mount {
          type     = "bind"
          source   = "local/etc"
          target   = "/etc/nomad-autoscaler"
          readonly = true
        }
      }

      # The token of the workload identity, as NOMAD_TOKEN: the agent's, which the plugin inherits.
      identity {
        env = true
      }

      env {
        HARVESTER_TOKEN_FILE = "${NOMAD_SECRETS_DIR}/harvester.token"
      }

      # The archive of a release: a file that is fetched by itself would not be executable.
      artifact {
        source      = "https://releases.example.org/harvester_0.1.0_linux_amd64.tar.gz"
        destination = "local/plugins"
        options {
          checksum = "sha256:0000000000000000000000000000000000000000000000000000000000000000"
        }
      }

      template {
        destination = "secrets/harvester.token"
        perms       = "0600"
        change_mode = "noop"
        data        = "{{ with nomadVar \"nomad/jobs/autoscaler\" }}{{ .token }}{{ end }}"
      }
      template {
        destination = "local/etc/harvester-ca.pem"
        change_mode = "noop"
        data        = "{{ with nomadVar \"nomad/jobs/autoscaler\" }}{{ .ca }}{{ end }}"
      }

      template {
        destination = "local/etc/agent.hcl"
        data        = file("agent.hcl")
      }
      # What differs from agent.hcl here.
      template {
        destination = "local/etc/job.hcl"
        data        = <<-EOF
          plugin_dir = "/local/plugins"

          http {
            bind_address = "0.0.0.0"
            bind_port    = {{ env "NOMAD_PORT_http" }}
          }

          nomad {
            address = "http://nomad.example.org:4646"
          }

          high_availability {
            enabled = true
          }

          # The source of the policy's check.
          apm "demand" {
            driver = "harvester"
            args   = ["apm"]
          }
        EOF
      }

      # The plugin's own templates have the same braces as Nomad's.
      template {
        destination     = "local/etc/policies/policy.hcl"
        data            = file("policy-demand.hcl")
        left_delimiter  = "[["
        right_delimiter = "]]"
      }
      template {
        destination     = "local/etc/cloud-init.yaml"
        data            = file("cloud-init.yaml")
        left_delimiter  = "[["
        right_delimiter = "]]"
      }

      resources {
        cpu    = 200
        memory = 256
      }
    }
  }
}
