// SPDX-License-Identifier: Apache-2.0
#include "ledger.h"

#include <algorithm>
#include <utility>

#include "nomad_harvester/base/json.h"

#include "nlohmann/json.hpp"
#include "vm_facts.h"

namespace nomad_harvester::scenario {

using nlohmann::json;
using simulator::Actor;
using simulator::Event;
using simulator::EventKind;

Ledger::Ledger(simulator::Cluster& cluster) : cluster_(cluster) {
  cluster_.SetObserver([this](const Event& event) { Note(event); });
}

Ledger::~Ledger() { cluster_.SetObserver(nullptr); }

void Ledger::Note(const Event& event) {
  if (event.actor != Actor::kApi) return;
  const base::MutexLock lock(mutex_);
  switch (event.kind) {
    case EventKind::kLeaseWritten: {
      const auto action = base::ParseJson(AnnotationOf(*event.object, kActionKey), "action");
      if (!action.ok()) return;
      actions_[base::GetString(*action, "id")].difference =
          base::GetInt(*action, "to") - base::GetInt(*action, "from");
      return;
    }
    case EventKind::kVmCreated:
      return NoteChange(event, AnnotationOf(*event.object, Key("action-id")), &Action::created);
    case EventKind::kMarked:
      return NoteChange(event, base::GetString(MarkOf(*event.object), "action"), &Action::marked);
    case EventKind::kVmDeleteRequested:
      return CheckDeletion(event);
    default:
      return;
  }
}

void Ledger::NoteChange(const Event& event, const std::string& action,
                        std::set<std::string> Action::*vms) {
  Action& noted = actions_[action];
  if (noted.created.empty() && noted.marked.empty()) {
    begun_.push_back(PoolOf(*event.object));
    changed_.NotifyAll();
  }
  (noted.*vms).insert(event.id);
}

void Ledger::CheckDeletion(const Event& event) {
  const auto violate = [&](const std::string& what) NH_REQUIRES(mutex_) {
    violations_.push_back("I1: " + event.name + " was deleted " + what + " (" +
                          simulator::Describe(event) + ")");
  };
  if (!IsMarked(*event.object)) return violate("without a mark");
  if (event.node == nullptr) return;  // it never joined
  const std::optional<json> drain = DrainFor(*event.node, event.id);
  if (!drain.has_value() ||
      base::GetString(*drain, "action") != base::GetString(MarkOf(*event.object), "action")) {
    return violate("with a node that its action did not drain");
  }
  if (IsDraining(*event.node) || LastDrainStatus(*event.node) != "complete") {
    violate("before its node was drained");
  }
  if (IsEligible(*event.node)) violate("although its node is eligible");
  for (const auto& allocation : event.allocations) {
    if (IsActive(*allocation)) violate("with work on it");
  }
}

std::optional<std::string> Ledger::AwaitAction() {
  base::MutexLock lock(mutex_);
  changed_.Wait(mutex_, [this]() NH_REQUIRES(mutex_) { return closed_ || !begun_.empty(); });
  if (begun_.empty()) return std::nullopt;
  std::string pool = std::move(begun_.front());
  begun_.pop_front();
  return pool;
}

void Ledger::Close() {
  {
    const base::MutexLock lock(mutex_);
    closed_ = true;
  }
  changed_.NotifyAll();
}

std::vector<std::string> Ledger::Violations() const {
  const base::MutexLock lock(mutex_);
  std::vector<std::string> all = violations_;
  for (const auto& [id, action] : actions_) {
    const auto may_create = std::max<std::int64_t>(0, action.difference);
    const auto may_remove = std::max<std::int64_t>(0, -action.difference);
    if (std::cmp_greater(action.created.size(), may_create)) {
      all.push_back("I3: action " + id + " created " + std::to_string(action.created.size()) +
                    " VMs, wanted " + std::to_string(may_create));
    }
    if (std::cmp_greater(action.marked.size(), may_remove)) {
      all.push_back("I2: action " + id + " marked " + std::to_string(action.marked.size()) +
                    " VMs, wanted " + std::to_string(may_remove));
    }
  }
  return all;
}

int Ledger::actions() const {
  const base::MutexLock lock(mutex_);
  return static_cast<int>(actions_.size());
}

}  // namespace nomad_harvester::scenario
