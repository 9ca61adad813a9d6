# Shared by the scripts: messages, packages, the directories. Sourced, not run.
# shellcheck shell=bash
set -euo pipefail
shopt -s inherit_errexit

# shellcheck disable=SC2034  # used by the scripts that source this file
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
name=$(basename "$0")

say() { echo "$name: $*" >&2; }
die() {
  say "$*"
  exit 1
}

as_root() {
  if [[ $(id -u) == 0 ]]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    die "needs root (or sudo) for: $*"
  fi
}

# Every Debian package that the project needs, in groups, each with the reason why it is there.
packages_of() {
  case $1 in
    build)
      echo g++                        # the compiler
      echo cmake ninja-build ccache   # the build
      echo pkg-config                 # gRPC's link lines, static and dynamic
      echo libgrpc++-dev protobuf-compiler-grpc libprotobuf-dev protobuf-compiler  # the plugin protocol
      echo libabsl-dev                # absl::Status in every interface
      echo nlohmann-json3-dev         # both APIs speak JSON
      echo libcurl4-openssl-dev libssl-dev libc-ares-dev libre2-dev zlib1g-dev  # HTTP, TLS, names
      echo libspdlog-dev libfmt-dev   # the writer below our structured log
      echo libyaml-cpp-dev            # kubeconfigs, cloud-config
      echo libkainjow-mustache-dev    # user-data templates
      echo libcli11-dev               # the command line
      echo libcpp-httplib-dev         # the simulator's HTTP server
      echo libgtest-dev libgmock-dev  # tests
      echo util-linux                 # setarch, for ThreadSanitizer
      ;;
    static)
      echo dpkg-dev                   # to unpack Debian's source of curl
      ;;
    lint)
      echo clang-14 clang-format-14 clang-tidy-14  # one version for everybody
      echo libclang-rt-14-dev shellcheck
      ;;
    e2e)
      echo etcd-server iproute2 procps  # the cluster's store; the network of the simulated machines
      ;;
    image)
      echo docker.io debootstrap      # the base image is made, not pulled
      ;;
    *) die "no package group '$1'" ;;
  esac
}

# Installs what is missing of the groups; says what.
need_packages() {
  local group package missing=()
  for group in "$@"; do
    for package in $(packages_of "$group"); do
      # A command that is there from elsewhere is as good.
      [[ $package == docker.io ]] && command -v docker >/dev/null && continue
      dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' ||
        missing+=("$package")
    done
  done
  ((${#missing[@]})) || return 0
  say "installing ${missing[*]}"
  as_root apt-get update -qq >&2
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    "${missing[@]}" >&2
}

jobs_count() { nproc; }
