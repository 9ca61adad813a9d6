# SPDX-License-Identifier: Apache-2.0
# What a pool needs in Harvester, and the policy that names it:
#   terraform init
#   terraform apply
#   terraform output -raw policy >/etc/nomad-autoscaler/policies/batch.hcl
# Not the plugin's token, which would stand in Terraform's state: docs/operations.md, "A kubeconfig for a
# ServiceAccount".
terraform {
  required_version = ">= 1.3"

  required_providers {
    harvester = {
      source  = "harvester/harvester"
      version = "~> 1.8" # that of the Harvester cluster
    }
    kubernetes = {
      source  = "hashicorp/kubernetes"
      version = "~> 3.0"
    }
  }
}

variable "kubeconfig" {
  type        = string
  description = "File with the kubeconfig of an administrator of the Harvester cluster."
}

variable "image" {
  type        = string
  description = "File with the VMs' disk, such as packer.pkr.hcl makes."
}

variable "vlan" {
  type        = number
  description = "VLAN of the VMs, on the cluster network \"mgmt\"."
}

provider "harvester" {
  kubeconfig = var.kubeconfig
}

provider "kubernetes" {
  config_path = var.kubeconfig
}

locals {
  rights = [for text in split("\n---\n", file("${path.module}/../rbac.yaml")) : yamldecode(text)]
}

resource "kubernetes_namespace_v1" "pool" {
  metadata {
    name = "nomad"
  }

  # It would delete every VM of the pools, without a drain.
  lifecycle {
    prevent_destroy = true
  }
}

# The ServiceAccount with its Roles, in the namespaces "nomad" and "default".
resource "kubernetes_manifest" "rights" {
  for_each = { for object in local.rights : "${object.metadata.namespace}/${object.kind}/${object.metadata.name}" => object }
  manifest = each.value

  depends_on = [kubernetes_namespace_v1.pool]
}

resource "harvester_image" "client" {
  name         = "nomad-client"
  namespace    = "default"
  display_name = "nomad-client"
  source_type  = "upload"
  file_path    = var.image
}

resource "harvester_network" "clients" {
  name                 = "nomad-clients"
  namespace            = "default"
  cluster_network_name = "mgmt"
  vlan_id              = var.vlan
}

output "policy" {
  value = templatefile("${path.module}/policy.hcl.tftpl", {
    namespace = kubernetes_namespace_v1.pool.metadata[0].name
    image     = harvester_image.client.id
    network   = harvester_network.clients.id
  })
}
