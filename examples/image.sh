#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the machine on which it runs, as root, one whose disk is an image for pools: docs/lifecycle.md, "The
# image". Packages in /tmp/packages are installed without a network; otherwise HashiCorp's repository must be
# set up. packer.pkr.hcl runs it.
set -eu

if ls /tmp/packages/*.deb >/dev/null 2>&1; then
  apt-get install -y --no-download /tmp/packages/*.deb
elif ls /tmp/packages/*.rpm >/dev/null 2>&1; then
  zypper --non-interactive install /tmp/packages/*.rpm
elif command -v zypper >/dev/null; then
  zypper --non-interactive install cloud-init qemu-guest-agent cni-plugins nomad
else
  apt-get update
  apt-get install -y cloud-init qemu-guest-agent containernetworking-plugins nomad
fi
systemctl enable qemu-guest-agent
systemctl disable --now nomad                    # cloud-init enables it, with a configuration
rm -rf /opt/nomad/data /etc/ssh/ssh_host_* /tmp/packages
truncate -s 0 /etc/machine-id
cloud-init clean --logs                          # the next boot is a first one
