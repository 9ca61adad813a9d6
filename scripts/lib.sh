# SPDX-License-Identifier: Apache-2.0
# Shared by the scripts: messages, packages, directories. Sourced, not run.
# shellcheck shell=bash
set -euo pipefail
shopt -s inherit_errexit

# shellcheck disable=SC2034  # used by the scripts that source this file
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck disable=SC2034
cache=${NOMAD_HARVESTER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/nomad-harvester}
name=$(basename "$0")

say() { echo "$name: $*" >&2; }
die() {
  say "$*"
  exit 1
}

# Every script prints the comment at its top for --help, and does nothing else.
case ${1:-} in
  -h | --help)
    awk 'NR > 2 { if (!/^#/ || /^# shellcheck/) exit; sub(/^# ?/, ""); print }' "$0"
    exit 0
    ;;
esac

# What differs between the releases of Debian: names of packages and tools, and the preset that is tested: what
# ships where it is built, and with shared libraries elsewhere.
# shellcheck source=/dev/null
debian=$(source /etc/os-release && echo "${VERSION_ID:-0}")
# shellcheck disable=SC2034  # used by the scripts that source this file
if ((debian < 13)); then
  boost_json=libboost-json1.81-dev
  clang=14
  tested_preset=static
else
  boost_json=libboost-json-dev
  clang=19
  tested_preset=release
fi

as_root() {
  if [[ $(id -u) == 0 ]]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    die "needs root (or sudo) for: $*"
  fi
}

# Before a command that uses apt's lists or packages: it waits for others of these scripts. apt-get itself waits for
# one of its two locks only.
alone=(flock /run/lock/nomad-harvester-packages)

# The Debian packages that the project needs, in groups, each with the reason.
packages_of() {
  case $1 in
    build)
      echo g++                        # the compiler
      echo cmake ninja-build ccache   # the build
      echo pkg-config                 # gRPC's link lines, static and dynamic
      echo libgrpc++-dev protobuf-compiler-grpc libprotobuf-dev protobuf-compiler  # the plugin protocol
      echo libabsl-dev                # absl::Status in every interface
      echo nlohmann-json3-dev         # both APIs use JSON
      echo "$boost_json"              # parses large lists while they arrive; with Beast, the HTTP server
      echo libcurl4-openssl-dev libssl-dev libc-ares-dev libre2-dev zlib1g-dev  # HTTP, TLS, names
      echo libspdlog-dev libfmt-dev   # writes the lines of the structured log
      echo libyaml-cpp-dev            # kubeconfigs, cloud-config
      echo libcli11-dev               # the command line
      echo prometheus-cpp-dev         # counts, and writes Prometheus' format
      echo libgtest-dev libgmock-dev  # tests
      echo zsh fish groff-base        # tests: what reads completion scripts and manual pages
      echo curl                       # tests: the documents submit work with it
      echo util-linux                 # setarch, for ThreadSanitizer
      ;;
    static)
      echo dpkg-dev                   # to unpack Debian's sources of curl and prometheus-cpp
      ;;
    lint)
      echo "clang-$clang" "clang-format-$clang" "clang-tidy-$clang"  # one version on each release
      echo "libclang-rt-$clang-dev" shellcheck
      ;;
    editor)
      echo "clangd-$clang"            # what an editor asks about the code (.clangd)
      ;;
    e2e)
      echo musl-tools busybox-static  # the user land of the agent's image
      echo iproute2 procps            # the network of the simulated machines
      echo containernetworking-plugins  # what a Nomad client finds of CNI
      ;;
    go)
      echo golang-go ca-certificates  # fetches the Go that builds the real parts
      ;;
    etcd)
      echo etcd-server                # the cluster's store
      ;;
    arm64)
      echo g++-aarch64-linux-gnu      # compiles for arm64
      ;;
    guest)
      echo qemu-system-x86 qemu-utils ovmf  # a machine, in emulation, its disks and UEFI
      echo xorriso                    # the volume with the user data
      echo debootstrap fdisk mtools   # the disk that it boots from
      ;;
    release)
      echo qemu-user-static           # runs the executable for arm64
      echo minisign                   # signs
      ;;
    debian)
      echo debootstrap                # makes the root of another release
      ;;
    image)
      echo docker.io debootstrap      # the base image is built, not pulled
      ;;
    *) die "no package group '$1'" ;;
  esac
}

# Installs the missing packages of the groups and lists them.
need_packages() {
  local group package missing=()
  for group in "$@"; do
    for package in $(packages_of "$group"); do
      # A docker command from another source suffices.
      [[ $package == docker.io ]] && command -v docker >/dev/null && continue
      dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' ||
        missing+=("$package")
    done
  done
  ((${#missing[@]})) || return 0
  say "installing ${missing[*]}"
  # What dpkg does, hundreds of lines, matters if it fails.
  local log
  log=$(mktemp)
  as_root "${alone[@]}" apt-get -o DPkg::Lock::Timeout=600 update -qq >&2
  as_root "${alone[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 install -y -qq \
    --no-install-recommends "${missing[@]}" >"$log" 2>&1 || {
    cat "$log" >&2
    die "could not install ${missing[*]}"
  }
  rm -f "$log"
}

# find_static_libraries ARCHITECTURE ARRAY: adds CMake's arguments for the libraries of the static executable
# that Debian has no static package of, and builds those that are not in the cache.
find_static_libraries() {
  local architecture=$1 prefix
  local -n arguments=$2
  prefix=$("$root/scripts/static-library" curl "$architecture")
  arguments+=("-DCURL_DIR=$prefix/lib/cmake/CURL")
  prefix=$("$root/scripts/static-library" prometheus "$architecture")
  arguments+=("-Dprometheus-cpp_DIR=$prefix/lib/cmake/prometheus-cpp")
}

# debian_source PACKAGE VERSION DIR: unpacks Debian's source package as DIR/source, in this version or not
# at all. Uses package lists below DIR, so that those of the machine are unchanged.
debian_source() {
  local package=$1 version=$2 dir=$3 file
  mkdir -p "$dir/lists/partial" "$dir/sources.d"
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
    [[ -e $file ]] || continue
    sed -n 's/^deb \(.*\)/deb-src \1/p' "$file"
  done >"$dir/sources.list"
  for file in /etc/apt/sources.list.d/*.sources; do
    [[ -e $file ]] || continue
    sed 's/^Types:.*/Types: deb-src/' "$file" >"$dir/sources.d/$(basename "$file")"
  done
  local apt_options=(-o "Dir::Etc::sourcelist=$dir/sources.list"
    -o "Dir::Etc::sourceparts=$dir/sources.d" -o "Dir::State::lists=$dir/lists"
    -o "APT::Sandbox::User=$(id -un)")
  (
    cd "$dir"
    apt-get "${apt_options[@]}" update -qq
    # Of a version that the registry does not have, apt-get takes the newest one without an error.
    apt-get "${apt_options[@]}" source -qq --download-only "$package=$version"
    [[ $(sed -n 's/^Version: *//p' ./*.dsc) == "$version" ]] ||
      die "the registry has no source of $package $version, the version of the installed package, but only of" \
        "$(apt-cache "${apt_options[@]}" madison "$package" | awk '{ print $3 }' | sort -u | xargs)." \
        "Upgrade the packages of $package on this machine (apt-get install --only-upgrade), then build again"
    dpkg-source --no-check -x ./*.dsc source >/dev/null
  )
}

# package_source SUITE: where this machine takes that suite from.
package_source() {
  # shellcheck disable=SC2016  # apt-get expands
  apt-get indextargets --format '$(REPO_URI) $(RELEASE)' | awk -v suite="$1" '$2 == suite { print $1; exit }'
}

# debian_root SUITE DIRECTORY PACKAGE,...: makes the root of a release with these packages, from where this machine
# takes its own.
debian_root() {
  local suite=$1 chroot=$2 here mirror security path
  # shellcheck source=/dev/null
  here=$(source /etc/os-release && echo "$VERSION_CODENAME")
  mirror=$(package_source "$here")
  security=$(package_source "$here-security")
  [[ -n $mirror ]] || die "apt has no source of $here on this machine"
  debootstrap --variant=minbase --include="$3" "$suite" "$chroot" "$mirror"
  {
    echo "deb $mirror $suite main"
    echo "deb $mirror $suite-updates main"
    [[ -z $security ]] || echo "deb $security $suite-security main"
  } >"$chroot/etc/apt/sources.list"
  # The root can be made again: nothing in it needs to survive a crash of the machine.
  echo force-unsafe-io >"$chroot/etc/dpkg/dpkg.cfg.d/unsafe-io"
  # Certificates and settings such as a proxy, so that apt works as on this machine. Links in the root are replaced:
  # they lead out of it.
  for path in /etc/apt/apt.conf.d /etc/ssl/certs /usr/local/share/ca-certificates; do
    [[ -e $path ]] || continue
    mkdir -p "$chroot$path"
    cp -L --recursive --remove-destination "$path/." "$chroot$path/"
  done
}

# in_root ROOT COMMAND...: runs a command in such a root, where systemctl is told that it does not run on the machine
# itself. Mounts are gone when it ends.
in_root() {
  # shellcheck disable=SC2016  # the inner shell expands
  unshare --mount --propagation private bash -euc '
    cd "$0"
    mount -t proc proc proc
    mount -t sysfs sysfs sys
    mount --rbind /dev dev
    exec chroot . env DEBIAN_FRONTEND=noninteractive LC_ALL=C SYSTEMD_OFFLINE=1 "$@"
  ' "$@"
}
