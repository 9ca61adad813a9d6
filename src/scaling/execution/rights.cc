// SPDX-License-Identifier: Apache-2.0
#include "execution/rights.h"

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/harvester/metadata.h"
#include "nomad_harvester/kube/error.h"

namespace nomad_harvester::scaling {
namespace {

constexpr Right kCreationRights[] = {{"create", "kubevirt.io", "virtualmachines"},
                                     {"get", "kubevirt.io", "virtualmachines"},
                                     {"patch", "kubevirt.io", "virtualmachines"},
                                     {"delete", "kubevirt.io", "virtualmachines"},
                                     {"create", "", "secrets"},
                                     {"get", "", "secrets"},
                                     {"patch", "", "secrets"},
                                     {"list", "", "secrets"},
                                     {"delete", "", "secrets"},
                                     {"list", "", "persistentvolumeclaims"},
                                     {"delete", "", "persistentvolumeclaims"}};
constexpr Right kRemovalRights[] = {{"get", "kubevirt.io", "virtualmachines"},
                                    {"patch", "kubevirt.io", "virtualmachines"},
                                    {"delete", "kubevirt.io", "virtualmachines"},
                                    {"list", "", "secrets"},
                                    {"delete", "", "secrets"},
                                    {"list", "", "persistentvolumeclaims"},
                                    {"delete", "", "persistentvolumeclaims"}};

// A denial by a server that could not evaluate every rule proves nothing, so it is returned as an
// error.
absl::StatusOr<bool> IsClearlyAllowed(const runtime::Context& context,
                                      const kube::KubeClient& client,
                                      const kube::ResourceAttributes& access) {
  const auto review = kube::ReviewAccess(context, client, access);
  if (!review.ok()) {
    return base::Annotate(review.status(), "the API server's rights review failed");
  }
  if (!review->allowed && !review->evaluation_error.empty()) {
    return base::Unavailable("the API server's rights review could not evaluate every rule: " +
                             review->evaluation_error);
  }
  return review->allowed;
}

}  // namespace

std::span<const Right> CreationRights() { return kCreationRights; }
std::span<const Right> RemovalRights() { return kRemovalRights; }

std::string RightText(const Right& right) {
  return std::string(right.verb) + " " + right.resource +
         (*right.group == '\0' ? "" : std::string(".") + right.group);
}

absl::StatusOr<std::vector<Right>> MissingRights(const runtime::Context& context,
                                                 const kube::KubeClient& client,
                                                 const kube::AccessRules& rules,
                                                 const std::string& ns,
                                                 std::span<const Right> rights) {
  std::vector<Right> missing;
  for (const Right& right : rights) {
    if (rules.Allows(right.verb, right.group, right.resource)) continue;
    if (rules.incomplete) {
      NH_ASSIGN_OR_RETURN(const kube::AccessReview review,
                          kube::ReviewAccess(context, client,
                                             {.verb = right.verb,
                                              .group = right.group,
                                              .resource = right.resource,
                                              .ns = ns,
                                              .subresource = ""}));
      if (review.allowed) continue;
    }
    missing.push_back(right);
  }
  return missing;
}

absl::Status ReviewDeniesLease(const runtime::Context& context, const kube::KubeClient& client,
                               const PoolKey& key, const absl::Status& refused) {
  const auto error = kube::GetKubeError(refused);
  const bool creating = error.has_value() && error->creating;
  // A Role may grant the rights for this one Lease only. A creation has no name at the API server.
  kube::ResourceAttributes lease{.verb = "",
                                 .group = "coordination.k8s.io",
                                 .resource = "leases",
                                 .ns = key.ns,
                                 .subresource = ""};
  if (!creating) lease.name = harvester::LeaseName(key.pool);
  bool allowed = true;
  for (const char* verb : creating ? std::vector{"create"} : std::vector{"get", "patch"}) {
    lease.verb = verb;
    NH_ASSIGN_OR_RETURN(const bool this_one, IsClearlyAllowed(context, client, lease));
    allowed = allowed && this_one;
  }
  if (allowed) return base::Unavailable("the API server's rights review allows what was refused");
  // A server that has not loaded its roles yet denies everything, even rights that every Status
  // needs.
  NH_ASSIGN_OR_RETURN(const bool knows_rights, IsClearlyAllowed(context, client,
                                                                {.verb = "list",
                                                                 .group = "kubevirt.io",
                                                                 .resource = "virtualmachines",
                                                                 .ns = key.ns,
                                                                 .subresource = ""}));
  if (knows_rights) return absl::OkStatus();
  return base::Unavailable(
      "the API server's rights review denies the token everything, list "
      "virtualmachines.kubevirt.io, too");
}

}  // namespace nomad_harvester::scaling
