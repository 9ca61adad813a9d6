// SPDX-License-Identifier: Apache-2.0
// Policy settings that modules below `scaling` need. `config` parses them, `nodepool` and
// `harvester` use them; none of these three modules depends on another.
#ifndef NOMAD_HARVESTER_POLICY_STRATEGIES_H_
#define NOMAD_HARVESTER_POLICY_STRATEGIES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace nomad_harvester::policy {

// An enum value and its name in the configuration.
template <typename T>
struct Choice {
  std::string_view name;
  T value;
};

template <typename T, std::size_t N>
constexpr std::string_view NameIn(const Choice<T> (&choices)[N], T value) {
  for (const Choice<T>& choice : choices) {
    if (choice.value == value) return choice.name;
  }
  return "";
}

// Decides which nodes of a pool are removed first.
enum class SelectorStrategy {
  kLeastBusy,
  kNewestCreateIndex,
  kOldestCreateIndex,
  kEmpty,
  kEmptyIgnoreSystem
};
// hashicorp/nomad-autoscaler:sdk/target.go, TargetNodeSelectorStrategy*.
inline constexpr Choice<SelectorStrategy> kSelectorStrategies[] = {
    {"least_busy", SelectorStrategy::kLeastBusy},
    {"newest_create_index", SelectorStrategy::kNewestCreateIndex},
    {"oldest_create_index", SelectorStrategy::kOldestCreateIndex},
    {"empty", SelectorStrategy::kEmpty},
    {"empty_ignore_system", SelectorStrategy::kEmptyIgnoreSystem},
};
inline std::string_view NameOf(SelectorStrategy strategy) {
  return NameIn(kSelectorStrategies, strategy);
}

// KubeVirt's run strategies that boot a VM
// (kubevirt/kubevirt:staging/src/kubevirt.io/api/core/v1/types.go, VirtualMachineRunStrategy).
enum class RunStrategy { kRerunOnFailure, kAlways, kOnce };
inline constexpr Choice<RunStrategy> kRunStrategies[] = {
    {"RerunOnFailure", RunStrategy::kRerunOnFailure},
    {"Always", RunStrategy::kAlways},
    {"Once", RunStrategy::kOnce},
};
inline std::string_view NameOf(RunStrategy strategy) { return NameIn(kRunStrategies, strategy); }

// BIOS, or UEFI with or without secure boot.
enum class Firmware { kBios, kUefi, kUefiSecure };
inline constexpr Choice<Firmware> kFirmwares[] = {
    {"bios", Firmware::kBios},
    {"uefi", Firmware::kUefi},
    {"uefi-secure", Firmware::kUefiSecure},
};
inline std::string_view NameOf(Firmware firmware) { return NameIn(kFirmwares, firmware); }

// Says whether the VMs of a pool are kept apart on different Harvester hosts.
enum class HostSpread { kRequired, kPreferred, kOff };
inline constexpr Choice<HostSpread> kHostSpreads[] = {
    {"required", HostSpread::kRequired},
    {"preferred", HostSpread::kPreferred},
    {"off", HostSpread::kOff},
};
inline std::string_view NameOf(HostSpread spread) { return NameIn(kHostSpreads, spread); }

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

#endif  // NOMAD_HARVESTER_POLICY_STRATEGIES_H_
