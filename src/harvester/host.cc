// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/harvester/host.h"

#include <utility>

#include "nomad_harvester/base/json_fields.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/kube/observed.h"

#include "nlohmann/json.hpp"

namespace nomad_harvester::harvester {
namespace {

constexpr std::string_view kZoneLabel = "topology.kubernetes.io/zone";

const base::JsonFields<Host>& HostFields() {
  static const auto* const kFields = new base::JsonFields<Host>({
      {"metadata.name", &base::SetText<&Host::name>},
      {"metadata.labels.*",
       [](Host& host, const base::JsonEvent& event) {
         base::PutText<&Host::labels>(host, event);
         if (event.name == kZoneLabel) host.zone = event.text;
       }},
      {"spec.unschedulable", &base::SetBool<&Host::cordoned>},
      {"status.allocatable.*", &base::PutText<&Host::allocatable>},
  });
  return *kFields;
}

}  // namespace

absl::StatusOr<Host> GetHost(const runtime::Context& context, const kube::KubeClient& client,
                             const std::string& name) {
  NH_ASSIGN_OR_RETURN(const kube::Observed observed, client.Get(context, kube::kHosts, "", name));
  return HostFields().Read(observed.object);
}

absl::StatusOr<std::vector<Host>> ListHosts(const runtime::Context& context,
                                            const kube::KubeClient& client) {
  NH_ASSIGN_OR_RETURN(auto list, client.List<Host>(context, kube::kHosts, "", {}, HostFields()));
  return std::move(list.value);
}

}  // namespace nomad_harvester::harvester
