// SPDX-License-Identifier: Apache-2.0
// A pool's history: what its last removed VMs were made of (rule T3). It is a ConfigMap with the
// name of the pool's Lease and one key for each VM. Pure.
#ifndef NOMAD_HARVESTER_HARVESTER_VM_HISTORY_H_
#define NOMAD_HARVESTER_HARVESTER_VM_HISTORY_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "nomad_harvester/base/time.h"
#include "nomad_harvester/harvester/virtual_machine.h"

#include "nlohmann/json_fwd.hpp"

namespace nomad_harvester::harvester {

// An entry has at most 4 KiB, so that twice as many stay below the 1 MiB of a ConfigMap.
inline constexpr std::size_t kMaxHistory = 100;

struct RemovedVm {
  std::string name;
  std::string template_hash{};   // annotation template-hash
  std::string template_parts{};  // annotation template-parts: a JSON object; empty: unknown
  std::string made_by{};         // the action that created it
  std::string action{};          // the action that removed it
  std::string why{};
  base::WallTime made_at{};
  std::optional<base::WallTime> joined_at{};
  std::optional<base::WallTime> ready_at{};
  base::WallTime removed_at{};  // when its deletion began; 1970 if the entry is unreadable
};

// Of a VM with a readable mark that is about to be deleted. Texts are cut, and `why` has no active
// secret (base::WithoutSecrets).
RemovedVm DescribeRemoval(const VirtualMachine& vm, const std::string& why, base::WallTime now);

// {"template": …, "parts": {…}, "made_by": …, "action": …, "made": …, "joined": …, "ready": …,
// "removed": …, "why": …}; unknown times and parts are null.
nlohmann::json ToJson(const RemovedVm& vm);

// The ConfigMap to create with the newest kMaxHistory of the VMs.
nlohmann::json BuildHistory(const std::string& ns, const std::string& pool,
                            const std::vector<RemovedVm>& vms);

// The VMs of a ConfigMap, the one removed last first. Members that are unreadable are empty.
std::vector<RemovedVm> ParseHistory(const nlohmann::json& config_map);

}  // namespace nomad_harvester::harvester

#endif  // NOMAD_HARVESTER_HARVESTER_VM_HISTORY_H_
