# SPDX-License-Identifier: Apache-2.0
# An image for pools from a distribution's cloud image, with QEMU and image.sh (docs/lifecycle.md, "The image").
# Not tested: Packer is not among what the project's tests have; they read this file, and run image.sh with
# stand-ins for the commands that it calls.
#   mkdir packages        # empty: packages come from the network; or their files, for a network without a way out
#   packer init packer.pkr.hcl
#   packer build -var cloud_image=debian-12-genericcloud-amd64.qcow2 -var checksum=sha512:… packer.pkr.hcl
# Then upload output/nomad-client.qcow2 as an image of Harvester.
packer {
  required_plugins {
    qemu = {
      source  = "github.com/hashicorp/qemu"
      version = ">= 1.1.0"
    }
  }
}

variable "cloud_image" {
  type        = string
  description = "The distribution's cloud image, a file or a URL"
}

variable "checksum" {
  type        = string
  description = "Its checksum, with its type"
}

source "qemu" "nomad" {
  iso_url          = var.cloud_image
  iso_checksum     = var.checksum
  disk_image       = true
  disk_size        = "10G"
  format           = "qcow2"
  accelerator      = "kvm"
  memory           = 2048
  headless         = true
  output_directory = "output"
  vm_name          = "nomad-client.qcow2"

  # A user for Packer alone, which goes with the shutdown.
  cd_label = "cidata"
  cd_content = {
    "meta-data" = ""
    "user-data" = <<-EOF
      #cloud-config
      ssh_pwauth: true
      users:
        - name: packer
          plain_text_passwd: packer
          lock_passwd: false
          shell: /bin/sh
          sudo: ALL=(ALL) NOPASSWD:ALL
    EOF
  }
  ssh_username     = "packer"
  ssh_password     = "packer"
  ssh_timeout      = "10m"
  shutdown_command = "sudo sh -c 'userdel -rf packer; rm -f /etc/sudoers.d/90-cloud-init-users; poweroff'"
}

build {
  sources = ["source.qemu.nomad"]

  provisioner "file" {
    source      = "packages"
    destination = "/tmp/"
  }

  provisioner "shell" {
    script          = "image.sh"
    execute_command = "sudo sh {{ .Path }}"
  }
}
