// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/harvester/host.h"

#include <utility>

#include "nomad_harvester/base/json_fields.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/kube/observed.h"

#include "nlohmann/json.hpp"
#include "object_fields.h"

namespace nomad_harvester::harvester {
namespace {

constexpr std::string_view kZoneLabel = "topology.kubernetes.io/zone";

struct HostRecord : Host {
  std::vector<Condition> conditions;
};

template <std::string Taint::*kMember>
void SetOfTaint(HostRecord& host, const base::JsonEvent& event) {
  if (!host.taints.empty()) base::SetText<kMember>(host.taints.back(), event);
}

void Complete(HostRecord& host, const base::JsonEvent& /*end*/) {
  const Condition* const ready = FindCondition(host.conditions, "Ready");
  host.ready = ready == nullptr || ready->status == "True";
}

const base::JsonFields<HostRecord>& HostFields() {
  using base::JsonEvent;
  static const auto* const kFields = new base::JsonFields<HostRecord>(WithConditions<HostRecord>({
      {"metadata.name", &base::SetText<&Host::name, HostRecord>},
      {"metadata.labels.*",
       [](HostRecord& host, const JsonEvent& event) {
         base::PutText<&Host::labels, HostRecord>(host, event);
         if (event.name == kZoneLabel) host.zone = event.text;
       }},
      {"spec.unschedulable", &base::SetBool<&Host::cordoned, HostRecord>},
      {"spec.taints",
       [](HostRecord& host, const JsonEvent& event) {
         if (event.kind == JsonEvent::Kind::kObject) host.taints.emplace_back();
       }},
      {"spec.taints.key", &SetOfTaint<&Taint::key>},
      {"spec.taints.value", &SetOfTaint<&Taint::value>},
      {"spec.taints.effect", &SetOfTaint<&Taint::effect>},
      {"status.allocatable.*", &base::PutText<&Host::allocatable, HostRecord>},
      {"", &Complete},
  }));
  return *kFields;
}

}  // namespace

absl::StatusOr<Host> GetHost(const runtime::Context& context, const kube::KubeClient& client,
                             const std::string& name) {
  NH_ASSIGN_OR_RETURN(const kube::Observed observed, client.Get(context, kube::kHosts, "", name));
  return Host(HostFields().Read(observed.object));
}

absl::StatusOr<std::vector<Host>> ListHosts(const runtime::Context& context,
                                            const kube::KubeClient& client) {
  NH_ASSIGN_OR_RETURN(auto list,
                      (client.List<Host, HostRecord>(context, kube::kHosts, "", {}, HostFields())));
  return std::move(list.value);
}

}  // namespace nomad_harvester::harvester
