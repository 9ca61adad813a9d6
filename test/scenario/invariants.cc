#include "invariants.h"

#include <algorithm>

#include "nomad_harvester/base/json.h"

#include "nlohmann/json.hpp"

namespace nomad_harvester::scenario {
namespace {

using nlohmann::json;
using simulator::Event;
using simulator::EventKind;

constexpr char kMark[] = "nomad-harvester-autoscaler/scale-in";

const json* Annotation(const json& object, std::string_view key) {
  const json* annotations = base::FindPath(object, {"metadata", "annotations"});
  return annotations == nullptr ? nullptr : base::FindMember(*annotations, key);
}

bool IsMarked(const json& vm) { return Annotation(vm, kMark) != nullptr; }

bool IsTerminating(const json& vm) {
  return base::FindPath(vm, {"metadata", "deletionTimestamp"}) != nullptr;
}

std::string MarkReason(const json& vm) {
  const json* mark = Annotation(vm, kMark);
  if (mark == nullptr || !mark->is_string()) return "";
  const auto parsed = base::ParseJson(mark->get<std::string>(), "mark");
  return parsed.ok() ? base::GetString(*parsed, "reason") : "";
}

std::string Uid(const json& object) {
  const json* uid = base::FindPath(object, {"metadata", "uid"});
  return uid != nullptr && uid->is_string() ? uid->get<std::string>() : "";
}

std::string Name(const json& object) {
  const json* name = base::FindPath(object, {"metadata", "name"});
  return name != nullptr && name->is_string() ? name->get<std::string>() : "";
}

// Nomad's LastDrain is a drain of ours for this VM.
bool IsDrainedByUs(const json& node, const std::string& uid) {
  const json* meta = base::FindPath(node, {"LastDrain", "Meta"});
  return meta != nullptr && base::GetString(*meta, "drained_by") == "nomad-autoscaler" &&
         base::GetString(*meta, "vm_uid") == uid;
}

bool IsActive(const json& allocation) {
  const std::string status = base::GetString(allocation, "ClientStatus");
  if (status == "pending" || status == "running") return true;
  const json* tasks = base::FindMember(allocation, "TaskStates");
  if (tasks == nullptr || !tasks->is_object()) return false;
  return std::any_of(tasks->begin(), tasks->end(),
                     [](const json& task) { return base::GetString(task, "State") != "dead"; });
}

}  // namespace

Invariants::Invariants(simulator::Cluster& cluster) : cluster_(cluster) {
  cluster_.SetObserver([this](const Event& event) { Check(event); });
}

Invariants::~Invariants() { cluster_.SetObserver(nullptr); }

std::int64_t Invariants::StandingVms() const {
  std::int64_t standing = 0;
  for (const json& vm : cluster_.Vms()) {
    if (!IsTerminating(vm) && !IsMarked(vm)) ++standing;
  }
  return standing;
}

void Invariants::Allow(std::int64_t wanted) {
  const std::int64_t current = StandingVms();
  wanted_ = std::max(wanted, current);
  // What earlier actions marked is still theirs to remove.
  std::int64_t marked = 0;
  for (const json& vm : cluster_.Vms()) {
    if (IsMarked(vm) && !IsTerminating(vm) && MarkReason(vm) != "broken") ++marked;
  }
  removals_left_ = std::max<std::int64_t>(0, current - wanted) + marked;
}

// I1: only a marked VM is deleted, and only if its node is drained by us, down, or absent. In these
// scenarios no deadline passes, so that no work may be left on it either.
void Invariants::CheckDeletion(const Event& event) {
  if (event.actor != simulator::Actor::kApi) return;
  const json& vm = *event.object;
  if (!removed_.insert(Uid(vm)).second) return;
  const bool broken = MarkReason(vm) == "broken";
  if (!IsMarked(vm)) violations_.push_back("I1: " + Name(vm) + " was deleted without a mark");
  if (event.node != nullptr) {
    const bool down = base::GetString(*event.node, "Status") == "down";
    if (!down && !IsDrainedByUs(*event.node, Uid(vm))) {
      violations_.push_back("I1: " + Name(vm) + " was deleted with a node that is not drained");
    }
    if (!down && base::FindMember(*event.node, "DrainStrategy") != nullptr &&
        base::FindMember(*event.node, "DrainStrategy")->is_object()) {
      violations_.push_back("I1: " + Name(vm) + " was deleted while its node still drained");
    }
    for (const auto& allocation : event.allocations) {
      if (!down && IsActive(*allocation)) {
        violations_.push_back("I1: " + Name(vm) + " was deleted with work on it");
      }
    }
  }
  if (!broken && --removals_left_ < 0) {
    violations_.push_back("I2: " + Name(vm) + " is one removal too many");
  }
}

void Invariants::Check(const Event& event) {
  ++checks_;
  if (event.kind == EventKind::kVmDeleteRequested) CheckDeletion(event);
  if (event.kind == EventKind::kVmCreated && event.actor == simulator::Actor::kApi) {
    if (StandingVms() > wanted_) {
      violations_.push_back("I3: " + event.name + " is one VM too many");
    }
  }
}

std::vector<std::string> Invariants::AtRest(std::int64_t count) const {
  std::vector<std::string> problems = violations_;
  std::set<std::string> names;
  for (const json& vm : cluster_.Vms()) {
    names.insert(Name(vm));
    if (IsMarked(vm)) problems.push_back("I5: " + Name(vm) + " is still marked");
    if (IsTerminating(vm)) problems.push_back("I5: " + Name(vm) + " is still terminating");
    const json node = cluster_.Node(cluster_.NodeIdOfVm(Uid(vm)));
    if (node.is_object() && base::GetString(node, "SchedulingEligibility") == "ineligible" &&
        IsDrainedByUs(node, Uid(vm))) {
      problems.push_back("I4: the node of " + Name(vm) + " was left ineligible by us");
    }
  }
  if (std::cmp_not_equal(names.size(), count)) {
    problems.push_back("I5: " + std::to_string(names.size()) + " VMs stand, wanted " +
                       std::to_string(count));
  }
  for (const json& secret : cluster_.Secrets()) {
    const std::string name = Name(secret);
    if (!name.ends_with("-cloudinit")) continue;
    if (!names.contains(name.substr(0, name.size() - 10))) {
      problems.push_back("I5: Secret " + name + " was left over");
    }
    if (base::FindPath(secret, {"metadata", "ownerReferences"}) == nullptr) {
      problems.push_back("I5: Secret " + name + " has no owner");
    }
  }
  for (const json& claim : cluster_.Claims()) {
    const std::string name = Name(claim);
    if (!names.contains(name.substr(0, name.rfind("-disk-")))) {
      problems.push_back("I5: volume " + name + " was left over");
    }
  }
  for (const json& node : cluster_.Nodes()) {
    const json* drain = base::FindMember(node, "DrainStrategy");
    if (drain != nullptr && drain->is_object()) {
      problems.push_back("I5: node " + base::GetString(node, "Name") + " still drains");
    }
  }
  return problems;
}

}  // namespace nomad_harvester::scenario
