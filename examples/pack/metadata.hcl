# SPDX-License-Identifier: Apache-2.0
app {
  url = "https://github.com/hashicorp/nomad-autoscaler"
}

pack {
  name        = "nomad_autoscaler_harvester"
  description = "The Nomad Autoscaler with the target plugin for Harvester: two agents, of which one is active"
  version     = "0.1.0"
}
