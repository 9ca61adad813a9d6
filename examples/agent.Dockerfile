# SPDX-License-Identifier: Apache-2.0
# The autoscaler's agent with the plugin in its plugin_dir, in one image. The plugin's own image (of a
# release, or scripts/image) has no shell to copy with, and needs none here:
#   docker load -i harvester_0.1.0_image_amd64.tar
#   docker build -t autoscaler --build-arg PLUGIN=NAME:TAG -f agent.Dockerfile .
# In the job: this image, no artifact, and plugin_dir = "/opt/nomad-autoscaler/plugins" as in agent.hcl.
ARG PLUGIN=nomad-harvester-autoscaler
ARG AGENT=hashicorp/nomad-autoscaler:0.5.0
FROM $PLUGIN AS plugin

FROM $AGENT
COPY --from=plugin /harvester /opt/nomad-autoscaler/plugins/harvester
