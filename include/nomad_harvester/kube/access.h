// SPDX-License-Identifier: Apache-2.0
// The rights of the token, for checks before an action begins.
#ifndef NOMAD_HARVESTER_KUBE_ACCESS_H_
#define NOMAD_HARVESTER_KUBE_ACCESS_H_

#include <string>
#include <string_view>
#include <utility>
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
  std::string subresource;
};

// One SelfSubjectAccessReview. The API server evaluates its whole chain of authorizers, so the
// result is final for this one right. Counts as a read. Errors: KubeClient's.
absl::StatusOr<bool> IsAllowed(const runtime::Context& context, const KubeClient& client,
                               const ResourceAttributes& access);

// The rights of the token in one namespace, including those granted cluster-wide.
class AccessRules {
 public:
  struct Rule {
    std::vector<std::string> verbs;
    std::vector<std::string> groups;
    std::vector<std::string> resources;
    std::vector<std::string> names;  // empty: all objects
  };

  AccessRules(std::vector<Rule> rules, bool incomplete, std::string evaluation_error)
      : rules_(std::move(rules)),
        incomplete_(incomplete),
        evaluation_error_(std::move(evaluation_error)) {}

  // Wildcards are matched as in RBAC ("*", and "*/status" for the subresource of any resource);
  // `resource` may be "virtualmachines/start". A rule with resourceNames matches only if `name` is
  // given and is one of them.
  bool Allows(std::string_view verb, std::string_view group, std::string_view resource,
              std::string_view name = {}) const;

  // The server could not list every rule (it uses an authorizer other than RBAC). A false from
  // Allows then means "unknown": call IsAllowed.
  bool incomplete() const { return incomplete_; }
  const std::string& evaluation_error() const { return evaluation_error_; }

 private:
  std::vector<Rule> rules_;
  bool incomplete_ = false;
  std::string evaluation_error_;
};

// One SelfSubjectRulesReview: all rights in a namespace in one request, so that a preflight needs
// one request per namespace. Counts as a read. Errors: KubeClient's.
absl::StatusOr<AccessRules> FetchAccessRules(const runtime::Context& context,
                                             const KubeClient& client, const std::string& ns);

}  // namespace nomad_harvester::kube

#endif  // NOMAD_HARVESTER_KUBE_ACCESS_H_
