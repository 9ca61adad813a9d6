// SPDX-License-Identifier: Apache-2.0
// The hosts, and what the pods on them ask for.
#include "nomad_harvester/harvester/host_room.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

#include "nomad_harvester/base/json_fields.h"
#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/harvester/metadata.h"
#include "nomad_harvester/kube/observed.h"

#include "object_fields.h"

namespace nomad_harvester::harvester {
namespace {

using base::JsonEvent;

void RaiseAmounts(const Amounts& least, Amounts* amounts) {
  for (const auto& [resource, amount] : least) {
    std::int64_t& value = (*amounts)[resource];
    value = std::max(value, amount);
  }
}

// A quantity that cannot be read counts as 0.
void AddRequest(const JsonEvent& event, Amounts* amounts) {
  if (event.kind != JsonEvent::Kind::kText || event.name == "ephemeral-storage") return;
  const std::int64_t amount = event.name == kCpu ? Thousandths(event.text).value_or(0)
                                                 : base::ParseQuantity(event.text).value_or(0);
  AddAmounts({{std::string(event.name), std::max<std::int64_t>(0, amount)}}, amounts);
}

// A pod that is on a host. Without a host: it has none yet, or it has ended.
struct PodOnHost {
  std::string host{};
  std::string ns{};
  std::string pool{};
  std::string vm{};
  Amounts amounts{};
};

// What a pod asks for is what its containers and sidecars ask for together, or one of its init
// containers with the sidecars before it, whichever is more, and the overhead of its runtime class
// (kubernetes/kubernetes:staging/src/k8s.io/component-helpers/resource/helpers.go, PodRequests).
struct PodOnHostRecord : PodOnHost {
  bool ended = false;
  Amounts containers{};
  Amounts sidecars{};  // the init containers that stay
  Amounts peak{};      // of the init containers
  Amounts overhead{};
  Amounts init{};  // the init container that is being read
  bool stays = false;
};

void EndInitContainer(PodOnHostRecord& pod) {
  Amounts init = std::exchange(pod.init, {});
  if (std::exchange(pod.stays, false)) {
    AddAmounts(init, &pod.sidecars);
    return;
  }
  AddAmounts(pod.sidecars, &init);
  RaiseAmounts(init, &pod.peak);
}

void AddUp(PodOnHostRecord& pod, const JsonEvent& /*end*/) {
  if (pod.ended) pod.host.clear();
  pod.amounts = std::move(pod.containers);
  AddAmounts(pod.sidecars, &pod.amounts);
  RaiseAmounts(pod.peak, &pod.amounts);
  AddAmounts(pod.overhead, &pod.amounts);
  pod.amounts[kPods] = 1;
}

const base::JsonFields<PodOnHostRecord>& PodOnHostFields() {
  using Record = PodOnHostRecord;
  static const auto* const kFields = new base::JsonFields<Record>({
      {"metadata.namespace", &base::SetText<&PodOnHost::ns, Record>},
      {"metadata.labels.*",
       [](Record& pod, const JsonEvent& event) {
         if (event.name == kPoolLabel) pod.pool = event.text;
       }},
      {"metadata.annotations.*",
       [](Record& pod, const JsonEvent& event) {
         if (event.name == kVmOfPod) pod.vm = event.text;
       }},
      {"spec.nodeName", &base::SetText<&PodOnHost::host, Record>},
      {"spec.overhead.*",
       [](Record& pod, const JsonEvent& event) { AddRequest(event, &pod.overhead); }},
      {"spec.containers.resources.requests.*",
       [](Record& pod, const JsonEvent& event) { AddRequest(event, &pod.containers); }},
      {"spec.initContainers",
       [](Record& pod, const JsonEvent& event) {
         if (event.kind == JsonEvent::Kind::kEnd) EndInitContainer(pod);
       }},
      {"spec.initContainers.restartPolicy",
       [](Record& pod, const JsonEvent& event) { pod.stays = event.text == "Always"; }},
      {"spec.initContainers.resources.requests.*",
       [](Record& pod, const JsonEvent& event) { AddRequest(event, &pod.init); }},
      {"status.phase",
       [](Record& pod, const JsonEvent& event) {
         pod.ended = event.text == "Succeeded" || event.text == "Failed";
       }},
      {"", &AddUp},
  });
  return *kFields;
}

}  // namespace

absl::StatusOr<std::vector<HostRoom>> ReadHostRooms(const runtime::Context& context,
                                                    const kube::KubeClient& client) {
  NH_ASSIGN_OR_RETURN(std::vector<Host> hosts, ListHosts(context, client));
  NH_ASSIGN_OR_RETURN(const auto pods, (client.List<PodOnHost, PodOnHostRecord>(
                                           context, kube::kPods, "", {}, PodOnHostFields())));
  std::map<std::string, HostRoom> rooms;
  for (Host& host : hosts) rooms[host.name].host = std::move(host);
  for (const PodOnHost& pod : pods.value) {
    const auto room = rooms.find(pod.host);
    if (room == rooms.end()) continue;
    AddAmounts(pod.amounts, &room->second.used);
    if (!pod.pool.empty()) room->second.vms[{pod.ns, pod.pool}].push_back(pod.vm);
  }
  std::vector<HostRoom> sorted;
  sorted.reserve(rooms.size());
  for (auto& [name, room] : rooms) sorted.push_back(std::move(room));
  return sorted;
}

}  // namespace nomad_harvester::harvester
