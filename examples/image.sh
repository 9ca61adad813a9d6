#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the machine on which it runs, as root, one whose disk is an image for pools: docs/lifecycle.md, "The
# image". Packages in /tmp/packages are installed without a network; otherwise HashiCorp's repository must be
# set up. packer.pkr.hcl runs it.
set -eu

if ls /tmp/packages/*.deb >/dev/null 2>&1; then
  # Without the lists apt knows no other source of the packages.
  apt-get install -y -o Dir::State::lists=/tmp/packages /tmp/packages/*.deb
elif ls /tmp/packages/*.rpm >/dev/null 2>&1; then
  zypper --non-interactive install /tmp/packages/*.rpm
elif command -v zypper >/dev/null; then
  zypper --non-interactive install cloud-init qemu-guest-agent cni-plugins nomad
else
  apt-get update
  apt-get install -y cloud-init qemu-guest-agent containernetworking-plugins nomad
fi
systemctl enable qemu-guest-agent
systemctl disable nomad                          # cloud-init enables it, with a configuration
systemctl stop nomad
rm -rf /opt/nomad/data /etc/ssh/ssh_host_* /tmp/packages
truncate -s 0 /etc/machine-id
cloud-init clean --logs                          # the next boot is a first one

# The rest changes nothing: it says what would keep each VM of the pool from joining, or from ending in order.
status=0
lacks() { status=1; echo "image.sh: this image $*" >&2; }
enabled() { for unit; do systemctl is-enabled --quiet "$unit" 2>/dev/null || return 1; done; }

programs=
add() { programs="$programs $1"; }
if command -v netplan >/dev/null; then
  add netplan                                    # it starts one of the next two
else
  ! enabled systemd-networkd || add systemd-networkd
  ! enabled NetworkManager || add NetworkManager
fi
! enabled networking || add ifupdown
! enabled wicked || add wicked
case $programs in
  ' '*' '*) lacks "has more than one program that configures the network:$programs" ;;
  '') lacks "has no program that configures the network" ;;
esac
! enabled systemd-networkd || enabled systemd-resolved || grep -qs '^nameserver' /etc/resolv.conf ||
  lacks "resolves no names: systemd-networkd leaves that to systemd-resolved"
enabled systemd-logind dbus.socket || enabled acpid || lacks "ignores the power button: install dbus, for systemd-logind"
[ ! -e /etc/cloud/cloud-init.disabled ] || lacks "has cloud-init disabled"
case $(grep -hs '^datasource_list:' /etc/cloud/cloud.cfg /etc/cloud/cloud.cfg.d/*.cfg | tail -n 1) in
  '' | *: | *NoCloud*) ;;
  *) lacks "has a datasource_list of cloud-init without NoCloud" ;;
esac
grep -qs /etc/nomad.d /etc/systemd/system/nomad.service /usr/lib/systemd/system/nomad.service ||
  lacks "has a unit of Nomad that does not read /etc/nomad.d"
exit $status
