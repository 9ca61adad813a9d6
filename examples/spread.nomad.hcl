# SPDX-License-Identifier: Apache-2.0
# A job whose allocations run on different physical hosts of Harvester, as far as there are several.
# The pool's policy needs publish_host = "true". Nodes without the metadata get allocations last.
job "web" {
  type = "service"

  group "web" {
    count = 4

    # Evenly over the zones, and within them over the hosts. Without zones the first one has no effect.
    spread {
      attribute = "${meta.harvester_zone}"
      weight    = 60
    }
    spread {
      attribute = "${meta.harvester_host}"
      weight    = 40
    }

    task "web" {
      driver = "docker"

      config {
        image = "nginx:1.29"
      }

      resources {
        cpu    = 200
        memory = 128
      }
    }
  }
}
