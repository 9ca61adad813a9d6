// SPDX-License-Identifier: Apache-2.0
// What tests read from the simulated objects: labels, marks, drains, allocations.
#ifndef NOMAD_HARVESTER_TEST_SCENARIO_VM_FACTS_H_
#define NOMAD_HARVESTER_TEST_SCENARIO_VM_FACTS_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nomad_harvester/base/time.h"

#include "nlohmann/json_fwd.hpp"
#include "support/object_uid.h"

namespace nomad_harvester::scenario {

// The prefix of all labels and annotations of the plugin.
inline constexpr char kPrefix[] = "nomad-harvester-autoscaler/";
std::string Key(std::string_view name);
inline constexpr char kMarkKey[] = "nomad-harvester-autoscaler/scale-in";
inline constexpr char kActionKey[] = "nomad-harvester-autoscaler/action";
// The namespace of the scenarios' pools.
inline constexpr char kNamespace[] = "nomad";

// Of a Kubernetes object; empty if it has none.
using support::UidOf;
std::string NameOf(const nlohmann::json& object);
std::string NamespaceOf(const nlohmann::json& object);
std::string LabelOf(const nlohmann::json& object, std::string_view key);
std::string AnnotationOf(const nlohmann::json& object, std::string_view key);
std::string PoolOf(const nlohmann::json& object);
// It carries the plugin's label, whatever its pool.
bool IsManaged(const nlohmann::json& object);
// The VM for which a volume or a Secret was made, by its name; empty: its name follows no pattern.
std::string VmOfLeftover(const nlohmann::json& object);
// The claims that its spec names and that Harvester restored in the place of a disk of the
// plugin's.
std::vector<std::string> RestoredClaimsOf(const nlohmann::json& vm);
bool IsTerminating(const nlohmann::json& object);

// Its annotation `self` names the VM itself and its firmware, so it is not a copy of another VM.
bool IsMember(const nlohmann::json& vm);
// The mark as an object; empty: unmarked, or unreadable.
nlohmann::json MarkOf(const nlohmann::json& vm);
bool IsMarked(const nlohmann::json& vm);
std::optional<base::WallTime> JoinDeadlineOf(const nlohmann::json& vm);
bool Runs(const nlohmann::json& vm);
bool IsPaused(const nlohmann::json& vm);
std::string PrintableStatus(const nlohmann::json& vm);

// Whether the deadline of a mark's drain and the grace after it have passed.
bool IsLate(const nlohmann::json& mark, base::WallTime now);

// The holder of a Lease, and whether it was renewed in the last 20 s.
std::string HolderOf(const nlohmann::json& lease);
bool IsLive(const nlohmann::json& lease, base::WallTime now);
nlohmann::json WithHolder(nlohmann::json lease, const std::string& holder, base::WallTime now);

// The Meta of the last drain of a full Nomad node, if it was a drain of ours for this VM.
std::optional<nlohmann::json> DrainFor(const nlohmann::json& node, const std::string& uid);
bool IsOurDrain(const nlohmann::json& node);
bool IsDraining(const nlohmann::json& node);
bool IsEligible(const nlohmann::json& node);
std::string LastDrainStatus(const nlohmann::json& node);
// Whether an allocation runs, will run, or has a task that does.
bool IsActive(const nlohmann::json& allocation);

}  // namespace nomad_harvester::scenario

#endif  // NOMAD_HARVESTER_TEST_SCENARIO_VM_FACTS_H_
