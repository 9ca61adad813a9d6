// SPDX-License-Identifier: Apache-2.0
#include "chaos.h"

#include <chrono>
#include <functional>
#include <optional>
#include <utility>

#include "nomad_harvester/base/json.h"

#include "nlohmann/json.hpp"
#include "support/hosts.h"
#include "vm_facts.h"

namespace nomad_harvester::scenario {
namespace {

using nlohmann::json;
using simulator::Fault;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr char kProtect[] = "nomad-harvester-autoscaler/protect";
constexpr char kDeleteFirst[] = "nomad-harvester-autoscaler/delete-first";
constexpr char kReplace[] = "nomad-harvester-autoscaler/replace";
constexpr char kHold[] = "nomad-harvester-autoscaler/hold-vpn";
constexpr std::size_t kMaxCopies = 3;

}  // namespace

Fault MakeFault(Dice& dice, support::FakeClock& clock, const simulator::RequestInfo& request) {
  switch (dice.Below(9)) {
    case 0:
      return Fault::Answer(500);
    case 1:
      return Fault::Answer(429, "", dice.Percent(50) ? "1" : "");
    case 2:
      // A read never conflicts.
      return request.has_effect && request.system == simulator::System::kHarvester
                 ? Fault::Answer(409)
                 : Fault::Answer(503);
    case 3:
      return Fault::Answer(504);
    case 4:
      return Fault::Drop();
    case 5:
      return Fault::DropReply();
    case 6:
      return Fault::Delay(dice.Between(milliseconds(100), seconds(15)));
    case 7:
      return Fault::CutReply();
    default:
      // The response is old when it is read.
      return Fault::BeforeReply(
          [&clock, wait = dice.Between(milliseconds(100), seconds(8))] { clock.Advance(wait); });
  }
}

void Operators::Later(std::function<void()> fn) {
  clock_.After(dice_.Between(seconds(10), minutes(8)), std::move(fn));
}

void Operators::Act() {
  const std::vector<json> vms = bystanders_.Without(cluster_.Vms());
  if (vms.empty()) return;
  if (dice_.Percent(3)) return Cordon();
  const json& vm = dice_.Of(vms);
  const std::string name = NameOf(vm);
  const std::string node = cluster_.NodeIdOfVm(UidOf(vm));
  if (!node.empty() && dice_.Percent(50)) {
    ActOnNode(name, node);
  } else {
    ActOnVm(name);
  }
}

// One host at a time, so that VMs can start on the other one.
void Operators::Cordon() {
  if (cordoned_) return;
  Note("cordon a host");
  cordoned_ = true;
  const std::string host = dice_.Percent(50) ? "rack1-a" : "rack1-b";
  for (const json& vm : bystanders_.Without(cluster_.Vms())) {
    if (cluster_.HostOfVm(NameOf(vm)) == host && dice_.Percent(50)) Pin(vm);
  }
  cluster_.PutObject(support::Host(host, true));
  Later([this, host] {
    cluster_.PutObject(support::Host(host, false));
    cordoned_ = false;
  });
}

void Operators::Pin(json vm) {
  if (!vm["status"].is_object()) return;
  cluster_.PutObject(support::Pinned(std::move(vm)));
}

void Operators::ActOnNode(const std::string& vm, const std::string& node) {
  switch (dice_.Below(9)) {
    case 0:
      Note("cancel a drain");
      cluster_.CancelDrain(node, dice_.Percent(70));
      return Later([this, node] { cluster_.SetEligible(node, true); });
    case 1:
      Note("enable a node");
      cluster_.SetEligible(node, true);
      return;
    case 2:
      Note("disable a node");
      cluster_.SetEligible(node, false);
      return Later([this, node] { cluster_.SetEligible(node, true); });
    case 3:
      Note("drain a node");
      cluster_.OperatorDrain(node, minutes(2), {{"message", "maintenance"}});
      return Later([this, node] { cluster_.CancelDrain(node, true); });
    case 4:
      Note("purge a node");
      cluster_.PurgeNode(node);
      return;
    case 5:
      Note("stop a Nomad agent");
      cluster_.KillNode(node);
      return Later([this, vm, node] {
        // Its machine may no longer exist, or run another agent.
        const json machine = cluster_.Vm(vm);
        if (Runs(machine) && cluster_.NodeIdOfVm(UidOf(machine)) == node) cluster_.ReviveNode(node);
      });
    case 6:
      Note("lose a Nomad agent's data");
      cluster_.ReviveNodeUnderNewId(node);
      return;
    case 7:
      Note("hang a drain");
      cluster_.HangDrain(node);
      return Later([this, node] { cluster_.HangDrain(node, false); });
    default:
      Note("hang a deletion");
      cluster_.HangDeletion(vm);
      return Later([this, vm] { cluster_.HangDeletion(vm, false); });
  }
}

void Operators::ActOnVm(const std::string& vm) {
  switch (dice_.Below(12)) {
    case 0:
      Note("remove a mark");
      cluster_.EditAnnotation(vm, kMarkKey, std::nullopt);
      return;
    case 1:
      Note("spoil a mark");
      if (IsMarked(cluster_.Vm(vm))) cluster_.EditAnnotation(vm, kMarkKey, "{\"action\":");
      return;
    case 2:
      Note("delete a VM");
      cluster_.DeleteVmByHand(vm);
      return;
    case 3:
      Note("stop a VM");
      cluster_.StopVm(vm);
      return Later([this, vm] { cluster_.StartVm(vm); });
    case 4:
      Note("restart a VM");
      cluster_.StopVm(vm);
      clock_.After(seconds(5), [this, vm] { cluster_.StartVm(vm); });
      return;
    case 5:
      Note("pause a VM");
      cluster_.PauseVm(vm);
      return Later([this, vm] { cluster_.PauseVm(vm, false); });
    case 6:
      Note("protect a VM");
      cluster_.EditAnnotation(vm, kProtect, "true");
      return Later([this, vm] { cluster_.EditAnnotation(vm, kProtect, std::nullopt); });
    case 7:
      Note("choose a VM to go first");
      cluster_.EditAnnotation(vm, kDeleteFirst, "true");
      return;
    case 8:
    case 9:
      Note("ask to replace a VM");
      cluster_.EditAnnotation(vm, kReplace, "true");
      return;
    case 10:
      Note("remove a hold");
      cluster_.EditAnnotation(vm, kHold, std::nullopt);
      return;
    default:
      return Copy(vm);
  }
}

void Operators::Copy(const std::string& vm) {
  std::size_t copies = 0;
  for (const json& other : bystanders_.Without(cluster_.Vms())) {
    if (!IsMember(other)) ++copies;
  }
  if (copies >= kMaxCopies || !IsMember(cluster_.Vm(vm))) return;
  Note("copy a VM");
  const std::string copy = "copy-" + std::to_string(++copies_);
  cluster_.CloneVm(vm, copy, dice_.Percent(30));
  Later([this, copy] { cluster_.DeleteVmByHand(copy); });
}

void Operators::Leave() {
  for (const char* host : {"rack1-a", "rack1-b"}) cluster_.PutObject(support::Host(host, false));
  for (const json& vm : bystanders_.Without(cluster_.Vms())) {
    const std::string name = NameOf(vm);
    cluster_.HangDeletion(name, false);
    if (!IsMember(vm)) cluster_.DeleteVmByHand(name);
    if (IsMember(vm) && PrintableStatus(vm) == "Paused") cluster_.PauseVm(name, false);
    if (AnnotationOf(vm, kProtect) == "true") {
      cluster_.EditAnnotation(name, kProtect, std::nullopt);
    }
    if (!AnnotationOf(vm, kReplace).empty()) cluster_.EditAnnotation(name, kReplace, std::nullopt);
  }
  for (const json& node : bystanders_.Without(cluster_.Nodes())) {
    const std::string id = base::GetString(node, "ID");
    cluster_.HangDrain(id, false);
    if (IsDraining(node) && !IsOurDrain(node)) cluster_.CancelDrain(id, true);
    if (!IsDraining(node) && !IsOurDrain(node)) cluster_.SetEligible(id, true);
  }
}

}  // namespace nomad_harvester::scenario
