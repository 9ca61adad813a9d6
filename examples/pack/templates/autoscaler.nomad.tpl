[[- /* A file as an HCL string that Nomad does not interpolate. */ -]]
[[- define "file" ]][[ fileContents . | replace "${" "$${" | replace "%{" "%%{" | toJson ]][[ end -]]
[[- $files := var "files" . -]]
[[- $dir := var "plugin_dir" . -]]
[[- if var "plugin_url" . ]][[ $dir = "/local/plugins" ]][[ end -]]
job [[ var "job_name" . | toJson ]] {
  type        = "service"
  namespace   = [[ var "namespace" . | toJson ]]
  datacenters = [[ var "datacenters" . | toJson ]]

  group "autoscaler" {
    count = [[ var "count" . ]]

    # Not on the machines that come and go.
    constraint {
      attribute = "${node.class}"
      operator  = "!="
      value     = [[ var "excluded_node_class" . | toJson ]]
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
        image = [[ var "image" . | toJson ]]
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
[[- if var "plugin_url" . ]]

      # The archive of a release: a file that is fetched by itself would not be executable.
      artifact {
        source      = [[ var "plugin_url" . | toJson ]]
        destination = "local/plugins"
        options {
          checksum = [[ var "plugin_checksum" . | toJson ]]
        }
      }
[[- end ]]

      template {
        destination = "secrets/harvester.token"
        perms       = "0600"
        change_mode = "noop"
        data        = "{{ with nomadVar \"[[ var "secrets" . ]]\" }}{{ .token }}{{ end }}"
      }
      template {
        destination = "local/etc/harvester-ca.pem"
        change_mode = "noop"
        data        = "{{ with nomadVar \"[[ var "secrets" . ]]\" }}{{ .ca }}{{ end }}"
      }

      template {
        destination = "local/etc/agent.hcl"
        data        = [[ template "file" (print $files "/agent.hcl") ]]
      }
      # What differs from agent.hcl here.
      template {
        destination = "local/etc/job.hcl"
        data        = <<-EOF
          plugin_dir = [[ $dir | toJson ]]

          http {
            bind_address = "0.0.0.0"
            bind_port    = {{ env "NOMAD_PORT_http" }}
          }

          nomad {
            address = [[ var "nomad_address" . | toJson ]]
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
        data            = [[ template "file" (print $files "/" (var "policy" .)) ]]
        left_delimiter  = "[[ "[[" ]]"
        right_delimiter = "[[ "]]" ]]"
      }
      template {
        destination     = "local/etc/[[ var "user_data" . ]]"
        data            = [[ template "file" (print $files "/" (var "user_data" .)) ]]
        left_delimiter  = "[[ "[[" ]]"
        right_delimiter = "[[ "]]" ]]"
      }

      resources {
        cpu    = [[ var "resources.cpu" . ]]
        memory = [[ var "resources.memory" . ]]
      }
    }
  }
}
