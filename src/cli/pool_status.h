// SPDX-License-Identifier: Apache-2.0
// The data that nomad-harvester status shows; text, JSON and YAML are renderings of it. Private to
// module cli.
#ifndef NOMAD_HARVESTER_CLI_POOL_STATUS_H_
#define NOMAD_HARVESTER_CLI_POOL_STATUS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nomad_harvester/scaling/maintenance.h"
#include "nomad_harvester/scaling/rules.h"

namespace nomad_harvester::cli {

// A VM younger than this is not reported for not having joined.
inline constexpr base::Duration kJoinsWithin = std::chrono::minutes(5);

// Something that is true of the pool or of some of its VMs: one reason, however many VMs share it.
struct Finding {
  std::string text;              // the first VM's, if there are several
  std::vector<std::string> vms;  // sorted; empty: it concerns the pool
  bool varies = false;           // the others' texts have other names, times or numbers
};

// Says nothing about nodes while Nomad cannot be read.
struct VmStatus {
  const scaling::VmView* view = nullptr;  // of the snapshot
  const nomad::Node* node = nullptr;      // null: it links to none
  scaling::VmState state = scaling::VmState::kUnmanaged;
  bool counts = false;
  base::Duration age{};
  std::string host{};  // empty: not known
  std::optional<base::WallTime> ready_by{};
  std::string_view link{};
  std::string link_explanation{};
  std::string not_ready{};     // why its node is not ready
  bool is_protected = false;   // by its annotation
  std::string protected_by{};  // what keeps scale-ins from it, "its annotation"; empty: nothing
  std::optional<std::vector<std::string>> drift{};  // unset: none, or not known
  std::string to_be_replaced{};                     // why it is to be replaced; empty: it is not
  scaling::Step step{};                             // the next step of Status' background work

  const harvester::VirtualMachine& vm() const { return *view->vm; }
};

struct PoolStatus {
  scaling::Inspection inspection;
  std::string policy{};  // the label of the files' policy of the pool; empty: no file was read
  base::WallTime time{};
  // What an operator has to look at: first of the pool, then of the VMs by name. Does not repeat
  // the report's reason.
  std::vector<Finding> troubles{};
  // What needs nobody: removals and replacements, by the VMs' names.
  std::vector<Finding> under_way{};
  std::map<std::string, std::int64_t> counters{};  // Status', such as "pending"
  std::vector<VmStatus> vms{};                     // by name
  std::vector<const nomad::Node*> unlinked{};      // nodes without a VM, by name
};

// `shared`: FileSettings::SharedText.
PoolStatus DescribePool(scaling::Inspection inspection, const std::string& policy = "",
                        const std::string& shared = "");

// "creating VMs failed 2 times in a row; next try at …".
std::string BackOffText(const std::string& cause, const harvester::BackOffEntry& entry,
                        base::WallTime now);
// Nomad's spelling.
std::string_view NodeStatusName(nomad::NodeStatus status);
// Says what to do about unfinished removals in a pool for which no policy was given.
std::string UnclaimedCure(const scaling::PoolKey& pool);

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_POOL_STATUS_H_
