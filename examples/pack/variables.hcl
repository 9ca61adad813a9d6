# SPDX-License-Identifier: Apache-2.0
variable "job_name" {
  description = "Name of the job; Nomad's policy and variables are bound to it (nomad-acl.hcl)"
  type        = string
  default     = "autoscaler"
}

variable "datacenters" {
  description = "Datacenters in which the agents may run"
  type        = list(string)
  default     = ["*"]
}

variable "namespace" {
  description = "Namespace of the job"
  type        = string
  default     = "default"
}

variable "count" {
  description = "How many agents run; their lock elects the active one"
  type        = number
  default     = 2
}

variable "excluded_node_class" {
  description = "Class of the machines that come and go, on which no agent may run"
  type        = string
  default     = "batch"
}

variable "image" {
  description = "Image of the agent"
  type        = string
  default     = "hashicorp/nomad-autoscaler:0.5.0"
}

variable "plugin_url" {
  description = "Where the archive with the plugin is fetched; empty: it is in the image, in plugin_dir"
  type        = string
  default     = "https://releases.example.org/harvester_0.1.0_linux_amd64.tar.gz"
}

variable "plugin_checksum" {
  description = "The archive's checksum, with its type"
  type        = string
  default     = "sha256:0000000000000000000000000000000000000000000000000000000000000000"
}

variable "plugin_dir" {
  description = "The agent's plugin_dir, if the plugin is in the image (agent.Dockerfile)"
  type        = string
  default     = "/opt/nomad-autoscaler/plugins"
}

variable "nomad_address" {
  description = "Nomad's address"
  type        = string
  default     = "http://nomad.example.org:4646"
}

variable "secrets" {
  description = "Nomad variable with the items token and ca, for Harvester"
  type        = string
  default     = "nomad/jobs/autoscaler"
}

variable "files" {
  description = "Directory of agent.hcl, the policy and the user data, as nomad-pack sees it"
  type        = string
  default     = "examples"
}

variable "policy" {
  description = "The file of the policy; policy.hcl takes the count from Prometheus instead"
  type        = string
  default     = "policy-demand.hcl"
}

variable "user_data" {
  description = "The file of user data that the policy names"
  type        = string
  default     = "cloud-init.yaml"
}

variable "resources" {
  description = "MHz and MB of an agent with its plugin"
  type = object({
    cpu    = number
    memory = number
  })
  default = {
    cpu    = 200
    memory = 256
  }
}
