#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A machine in namespaces whose root is that of scripts/host-root: process 1 of its process table, a network, cgroups
# and devices of its own, except for /dev/kvm, which it has not. Nothing of it is left when its process 1 is killed, but
# empty cgroups and loop devices, which "clean" removes.
#
#   real-host.sh boot DIRECTORY ROOT NAME    is its process 1, and says "ready"
#   real-host.sh run DIRECTORY COMMAND...    runs a command in it
#   real-host.sh clean DIRECTORY             after its end
set -euo pipefail

action=$1
directory=$2
shift 2

# Its own cgroup of each controller, below this process's. The kernel's controllers are of version 1 here: kubelet and
# runc find them by their names.
make_cgroups() {
  local controller path cgroup
  while IFS=: read -r _ controller path; do
    [[ -n $controller ]] || continue
    cgroup=/sys/fs/cgroup/${controller#name=}${path%/}/real-host
    mkdir -p "$cgroup"
    if [[ $controller == cpuset ]]; then
      for file in cpuset.cpus cpuset.mems; do cat "$cgroup/../$file" >"$cgroup/$file"; done
    fi
    # The guest's clock goes on while QEMU waits for a processor, and a pod has a small share of the host's.
    if [[ $controller == cpu ]]; then echo 20480 >"$cgroup/cpu.shares"; fi
    echo "$cgroup"
  done </proc/self/cgroup >"$directory/cgroups"
}

enter_cgroups() {
  local cgroup
  while read -r cgroup; do echo $$ >"$cgroup/cgroup.procs"; done <"$directory/cgroups"
}

# In the namespaces: mounts, devices, network.
become_host() {
  local root=$1 name=$2 controller device number=0 m=$directory/m
  mount --make-rprivate /
  mount -t overlay overlay -o "lowerdir=$root,upperdir=$directory/upper,workdir=$directory/work" "$m"
  mount -t proc proc "$m/proc"
  mount -t sysfs sysfs "$m/sys"
  mount -t tmpfs -o mode=755 cgroup "$m/sys/fs/cgroup"
  while IFS=: read -r _ controller _; do
    [[ -n $controller ]] || continue
    mkdir "$m/sys/fs/cgroup/${controller#name=}"
    mount -t cgroup -o "${controller/name=/none,name=}" cgroup "$m/sys/fs/cgroup/${controller#name=}"
  done </proc/self/cgroup
  mount -t tmpfs -o mode=755 tmpfs "$m/run"
  mount -t tmpfs -o mode=755 tmpfs "$m/dev"
  mkdir "$m"/dev/{net,pts,shm}
  for device in null zero full random urandom tty loop-control net/tun; do cp -a "/dev/$device" "$m/dev/$device"; done
  for device in {0..63}; do mknod "$m/dev/loop$device" b 7 "$device"; done
  ln -s null "$m/dev/kmsg" # of the whole machine
  mount -t devpts -o newinstance,ptmxmode=0666 devpts "$m/dev/pts"
  mount -t tmpfs tmpfs "$m/dev/shm"
  ln -s pts/ptmx "$m/dev/ptmx"
  ln -s /proc/self/fd "$m/dev/fd"
  for device in stdin stdout stderr; do ln -s "/proc/self/fd/$((number++))" "$m/dev/$device"; done
  # KubeVirt's node-labeller.sh makes the device that it finds there.
  grep -vw kvm /proc/misc >"$directory/misc"
  mount --bind "$directory/misc" "$m/proc/misc"
  # What overlays cannot be on top of.
  for device in containerd kubelet; do
    mkdir -p "$m/var/lib/$device" "$directory/$device"
    mount --bind "$directory/$device" "$m/var/lib/$device"
  done
  mkdir -p "$m/host" "$m/old"
  mount --bind "$directory" "$m/host"
  cd "$m"
  pivot_root . old
  umount -l /old
  mkdir -p /pods /var/lib/kubelet/pods
  mount --make-rshared /
  mount --bind /var/lib/kubelet/pods /pods # as virt-handler's pod has it, for short paths of sockets
  hostname "$name"
  echo "127.0.0.1 localhost $name" >/etc/hosts
  ip link set lo up
  echo 1 >/proc/sys/net/ipv4/ip_forward
  echo ready
  while :; do sleep 3600; done # and bash waits for all whose parents have ended
}

case $action in
  boot)
    mkdir -p "$directory"/{m,upper,work}
    make_cgroups
    enter_cgroups
    exec unshare --mount --net --pid --uts --ipc --cgroup --fork --kill-child \
      bash -euc "$(declare -f become_host); directory=$directory; become_host $*"
    ;;
  run)
    enter_cgroups
    exec nsenter --target "$(pgrep -P "$(cat "$directory/pid")")" --all --root --wdns=/ "$@"
    ;;
  clean)
    # Its processes end with process 1, but not before it.
    while read -r cgroup; do
      until find "$cgroup" -depth -type d -exec rmdir {} +; do sleep 0.1; done 2>/dev/null
    done <"$directory/cgroups"
    for disk in "$directory"/disk-*; do
      [[ -e $disk ]] || continue
      losetup --noheadings --output NAME --associated "$disk" | xargs -r losetup --detach
    done
    ;;
esac
