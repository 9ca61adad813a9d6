// SPDX-License-Identifier: Apache-2.0
// The token's rights in Harvester, and the consequence of each missing one.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/kube/error.h"

#include "absl/strings/str_join.h"
#include "commands/check_sources.h"
#include "execution/rights.h"

namespace nomad_harvester::scaling {
namespace {

constexpr char kGrant[] = "grant what the Role of examples/rbac.yaml grants in namespace ";
constexpr char kGrantCluster[] = "grant it as the optional ClusterRole of examples/rbac.yaml does";
constexpr char kGrantHistory[] =
    "grant it as the comment in the Role of examples/rbac.yaml does, in namespace ";

constexpr char kNoHistory[] =
    "what a VM was made of cannot be seen once it is removed (nomad-harvester status --history)";

constexpr Right kStatusRights[] = {{"list", "kubevirt.io", "virtualmachines"}};
constexpr Right kLeaseRights[] = {{"get", "coordination.k8s.io", "leases"},
                                  {"create", "coordination.k8s.io", "leases"},
                                  {"patch", "coordination.k8s.io", "leases"}};

struct OptionalRight {
  Right right;
  bool of_cluster = false;
  const char* loss;
};

std::vector<OptionalRight> OptionalRights(const config::PluginConfig& config,
                                          const config::PoolPolicy& policy) {
  std::vector<OptionalRight> rights = {
      {.right = {"list", "kubevirt.io", "virtualmachineinstances"},
       .loss =
           "the addresses of VMs identify no node, and whether the guest of a node that is down "
           "still runs is not known"},
      {.right = {"get", "kubevirt.io", "virtualmachineinstances"},
       .loss = "VMs whose node is down are not removed"},
      {.right = {"list", "", "resourcequotas"},
       .loss = "how many VMs a quota allows is known only when Harvester halts one"},
      {.right = {"get", "", "namespaces"},
       .loss =
           "a node may be purged that another Harvester cluster drained for a pool of this name"},
      {.right = {"list", "events.k8s.io", "events"},
       .loss = "why the volumes of a VM do not come, and a VM's Events, are not told"},
      {.right = {"list", "", "pods"},
       .loss = "a VM that no host takes waits for its join_timeout, and the cause that is told is "
               "that of the first attempt"},
      {.right = {"list", "coordination.k8s.io", "leases"},
       .loss = "nomad-harvester gc does not find pools of which only a Lease exists"},
      {.right = {"list", "", "nodes"},
       .of_cluster = true,
       .loss = policy.on_host_maintenance == config::HostMaintenance::kEvacuate
                   ? "no VM leaves a cordoned host, or is removed first because of it"
                   : "VMs on cordoned hosts are not removed first"}};
  for (const Right& right : HistoryRights()) rights.push_back({.right = right, .loss = kNoHistory});
  rights.push_back({.right = {"get", "", "configmaps"}, .loss = kNoHistory});
  if (config.events) {
    rights.push_back({.right = {"create", "events.k8s.io", "events"},
                      .loss = "Harvester's UI shows no Events of the plugin (or set events = "
                              "\"false\")"});
    rights.push_back({.right = {"patch", "events.k8s.io", "events"},
                      .loss = "an Event that repeats is not counted"});
  }
  if (policy.publish_host) {
    rights.push_back({.right = {"get", "", "nodes"},
                      .of_cluster = true,
                      .loss = "publish_host publishes no harvester_zone"});
  }
  if (policy.vm_template.has_value() || !policy.data_disks.empty()) {
    rights.push_back({.right = {"get", "storage.k8s.io", "storageclasses"},
                      .of_cluster = true,
                      .loss = "a storage class that is missing shows only when VMs do not start"});
  }
  if (policy.vm_template.has_value() || policy.machine.contains("priority_class")) {
    rights.push_back({.right = {"get", "scheduling.k8s.io", "priorityclasses"},
                      .of_cluster = true,
                      .loss = "a priority class that is missing shows only when VMs do not start"});
  }
  return rights;
}

std::string Texts(const std::vector<Right>& rights) {
  std::vector<std::string> texts;
  texts.reserve(rights.size());
  for (const Right& right : rights) texts.push_back(RightText(right));
  return absl::StrJoin(texts, ", ");
}

}  // namespace

bool Lacks(const std::vector<Right>& missing, std::string_view verb, std::string_view resource) {
  return std::any_of(missing.begin(), missing.end(), [&](const Right& right) {
    return verb == right.verb && resource == right.resource;
  });
}

bool IsOfMissingRight(const absl::Status& status, const std::vector<Right>& missing,
                      std::string_view verb, std::string_view resource) {
  const bool refused = kube::IsForbidden(status) || absl::IsPermissionDenied(status);
  return refused && Lacks(missing, verb, resource);
}

std::string TextOfRead(const absl::Status& status) {
  return base::Message(status) +
         (kube::IsForbidden(status) ? ", though the review of rights grants it" : "");
}

std::vector<Right> CheckRights(const runtime::Context& context, const PoolDependencies& deps,
                               const config::PoolPolicy& policy, const kube::AccessRules& rules,
                               CheckLines* lines) {
  std::vector<Right> all_missing;
  const kube::KubeClient& client = *deps.clients.kube;
  const auto check = [&](const char* id, std::span<const Right> rights) {
    const auto missing = MissingRights(context, client, rules, policy.ns, rights);
    if (!missing.ok()) {
      all_missing.insert(all_missing.end(), rights.begin(), rights.end());
      lines->Set(id, CheckOutcome::kFail, base::Message(missing.status()), kSeeHarvester);
    } else if (missing->empty()) {
      lines->Set(id, CheckOutcome::kPass, "granted in namespace " + policy.ns);
    } else {
      all_missing.insert(all_missing.end(), missing->begin(), missing->end());
      lines->Set(id, CheckOutcome::kFail,
                 "the token may not, in namespace " + policy.ns + ": " + Texts(*missing),
                 kGrant + policy.ns);
    }
  };
  check("harvester.rights.status", kStatusRights);
  check("harvester.rights.growth", CreationRights());
  check("harvester.rights.removal", RemovalRights());
  check("harvester.rights.lease", kLeaseRights);
  constexpr char kOptional[] = "harvester.rights.optional";
  bool complete = true;
  const kube::AccessRules ask_each{.rules = {}, .incomplete = true};
  for (const OptionalRight& optional : OptionalRights(*deps.clients.config, policy)) {
    // They are for one purpose, and granted together.
    const bool is_history = std::string_view(optional.right.resource) == "configmaps";
    if (is_history && Lacks(all_missing, "create", "configmaps")) continue;
    // A Role cannot grant rights on cluster-scoped objects, although a review of the namespace
    // lists them.
    const auto missing =
        MissingRights(context, client, optional.of_cluster ? ask_each : rules,
                      optional.of_cluster ? "" : policy.ns, std::span(&optional.right, 1));
    if (missing.ok() && missing->empty()) continue;
    complete = false;
    all_missing.push_back(optional.right);
    const std::string subject = "optional right: " + RightText(optional.right);
    if (missing.ok()) {
      lines->Add(
          kOptional, subject, CheckOutcome::kWarn, std::string("missing: ") + optional.loss,
          optional.of_cluster ? kGrantCluster : (is_history ? kGrantHistory : kGrant) + policy.ns);
    } else {
      lines->Add(kOptional, subject, CheckOutcome::kFail, base::Message(missing.status()),
                 kSeeHarvester);
    }
  }
  if (complete) lines->Set(kOptional, CheckOutcome::kPass, "all granted");
  return all_missing;
}

}  // namespace nomad_harvester::scaling
