// SPDX-License-Identifier: Apache-2.0
// Queries the token's rights, for checks before an action begins.
#ifndef NOMAD_HARVESTER_KUBE_ACCESS_H_
#define NOMAD_HARVESTER_KUBE_ACCESS_H_

#include <string>
#include <string_view>
#include <vector>

#include "nomad_harvester/kube/client.h"
#include "nomad_harvester/runtime/context.h"

#include "absl/status/statusor.h"

namespace nomad_harvester::kube {

struct ResourceAttributes {
  std::string verb;
  std::string group;     // "" is the core group
  std::string resource;  // plural
  std::string ns;        // empty: cluster-scoped
};

// Sends one SelfSubjectAccessReview. The API server evaluates its whole chain of authorizers.
// Counts as a read. Errors: KubeClient's.
absl::StatusOr<bool> ReviewAccess(const runtime::Context& context, const KubeClient& client,
                                  const ResourceAttributes& access);

// The rights of the token in one namespace, including those granted cluster-wide, but not those of
// single objects (resourceNames).
struct AccessRules {
  struct Rule {
    std::vector<std::string> verbs;
    std::vector<std::string> groups;
    std::vector<std::string> resources;
  };

  // For resources without subresources. "*" is matched as in RBAC.
  bool Allows(std::string_view verb, std::string_view group, std::string_view resource) const;

  std::vector<Rule> rules;
  // The server could not list every rule (it uses an authorizer other than RBAC). A false from
  // Allows then means "unknown": call ReviewAccess.
  bool incomplete = false;
};

// Sends one SelfSubjectRulesReview, which returns all rights in a namespace, so that a preflight
// needs one request per namespace. Counts as a read. Errors: KubeClient's.
absl::StatusOr<AccessRules> FetchAccessRules(const runtime::Context& context,
                                             const KubeClient& client, const std::string& ns);

}  // namespace nomad_harvester::kube

#endif  // NOMAD_HARVESTER_KUBE_ACCESS_H_
