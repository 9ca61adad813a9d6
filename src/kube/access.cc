// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/kube/access.h"

#include <algorithm>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/http/reply_text.h"
#include "nomad_harvester/kube/observed.h"

#include "nlohmann/json.hpp"

namespace nomad_harvester::kube {
namespace {

constexpr char kAccessReviews[] = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
constexpr char kRulesReviews[] = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";

Json Review(const char* kind, Json spec) {
  return {{"apiVersion", "authorization.k8s.io/v1"}, {"kind", kind}, {"spec", std::move(spec)}};
}

bool Holds(const std::vector<std::string>& list, std::string_view text) {
  return std::any_of(list.begin(), list.end(), [text](const std::string& element) {
    return element == "*" || element == text;
  });
}

}  // namespace

absl::StatusOr<bool> ReviewAccess(const runtime::Context& context, const KubeClient& client,
                                  const ResourceAttributes& access) {
  Json attributes = {{"verb", access.verb}, {"group", access.group}, {"resource", access.resource}};
  if (!access.ns.empty()) attributes["namespace"] = access.ns;
  NH_ASSIGN_OR_RETURN(
      const Json review,
      client.CreateReview(context, kAccessReviews,
                          Review("SelfSubjectAccessReview", {{"resourceAttributes", attributes}})));
  const Json* allowed = base::FindPath(review, {"status", "allowed"});
  if (allowed == nullptr || !allowed->is_boolean()) {
    return base::Internal("ask SelfSubjectAccessReview: the reply has no status.allowed");
  }
  return allowed->get<bool>();
}

bool AccessRules::Allows(std::string_view verb, std::string_view group,
                         std::string_view resource) const {
  return std::any_of(rules.begin(), rules.end(), [&](const Rule& rule) {
    return Holds(rule.verbs, verb) && Holds(rule.groups, group) && Holds(rule.resources, resource);
  });
}

absl::StatusOr<AccessRules> FetchAccessRules(const runtime::Context& context,
                                             const KubeClient& client, const std::string& ns) {
  NH_ASSIGN_OR_RETURN(const Json review,
                      client.CreateReview(context, kRulesReviews,
                                          Review("SelfSubjectRulesReview", {{"namespace", ns}})));
  const Json* status = base::FindMember(review, "status");
  const Json* list = status == nullptr ? nullptr : base::FindMember(*status, "resourceRules");
  if (list == nullptr || !(list->is_array() || list->is_null())) {
    return base::Internal("ask SelfSubjectRulesReview: the reply has no status.resourceRules");
  }
  AccessRules rules;
  rules.incomplete = base::GetBool(*status, "incomplete");
  for (const Json& rule : *list) {
    if (!base::GetStrings(rule, "resourceNames").empty()) continue;
    rules.rules.push_back({base::GetStrings(rule, "verbs"), base::GetStrings(rule, "apiGroups"),
                           base::GetStrings(rule, "resources")});
  }
  return rules;
}

}  // namespace nomad_harvester::kube
