// SPDX-License-Identifier: Apache-2.0
// Describes a policy's VMs beyond image and size: `config` parses it, `harvester` builds objects
// from it, and neither depends on the other.
#ifndef NOMAD_HARVESTER_POLICY_MACHINE_H_
#define NOMAD_HARVESTER_POLICY_MACHINE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "nomad_harvester/policy/strategies.h"

namespace nomad_harvester::policy {

// BIOS, or UEFI with or without secure boot.
enum class Firmware { kBios, kUefi, kUefiSecure };
inline constexpr Choice<Firmware> kFirmwares[] = {
    {"bios", Firmware::kBios},
    {"uefi", Firmware::kUefi},
    {"uefi-secure", Firmware::kUefiSecure},
};
std::string_view NameOf(Firmware firmware);

// Says whether the VMs of a pool are kept apart on different Harvester hosts.
enum class HostSpread { kRequired, kPreferred, kOff };
inline constexpr Choice<HostSpread> kHostSpreads[] = {
    {"required", HostSpread::kRequired},
    {"preferred", HostSpread::kPreferred},
    {"off", HostSpread::kOff},
};
std::string_view NameOf(HostSpread spread);

// An empty volume in addition to the root disk.
struct DataDisk {
  std::int64_t bytes = 0;
  std::string storage_class;     // empty: Harvester's default
  bool read_write_once = false;  // else ReadWriteMany, which live migration needs
  friend bool operator==(const DataDisk&, const DataDisk&) = default;
};

// Devices of a host, by the resource name that KubeVirt's device plugins give them.
struct DeviceRequest {
  std::string resource;  // "nvidia.com/GA102GL_A10"
  std::int64_t count = 1;
  friend bool operator==(const DeviceRequest&, const DeviceRequest&) = default;
};

}  // namespace nomad_harvester::policy

#endif  // NOMAD_HARVESTER_POLICY_MACHINE_H_
