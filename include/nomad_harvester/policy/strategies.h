// SPDX-License-Identifier: Apache-2.0
// Policy settings that modules below `scaling` need. `config` parses them, `nodepool` and
// `harvester` use them; none of these three modules depends on another.
#ifndef NOMAD_HARVESTER_POLICY_STRATEGIES_H_
#define NOMAD_HARVESTER_POLICY_STRATEGIES_H_

#include <string_view>

namespace nomad_harvester::policy {

// An enum value and its name in the configuration.
template <typename T>
struct Choice {
  std::string_view name;
  T value;
};

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
std::string_view NameOf(SelectorStrategy strategy);

// KubeVirt's run strategies that boot a VM
// (kubevirt/kubevirt:staging/src/kubevirt.io/api/core/v1/types.go, VirtualMachineRunStrategy).
enum class RunStrategy { kRerunOnFailure, kAlways, kOnce };
inline constexpr Choice<RunStrategy> kRunStrategies[] = {
    {"RerunOnFailure", RunStrategy::kRerunOnFailure},
    {"Always", RunStrategy::kAlways},
    {"Once", RunStrategy::kOnce},
};
std::string_view NameOf(RunStrategy strategy);

}  // namespace nomad_harvester::policy

#endif  // NOMAD_HARVESTER_POLICY_STRATEGIES_H_
