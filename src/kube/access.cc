// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/kube/access.h"

#include <algorithm>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/status.h"

namespace nomad_harvester::kube {
namespace {

constexpr char kAccessReviews[] = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
constexpr char kRulesReviews[] = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";

Json Review(const char* kind, Json spec) {
  return {{"apiVersion", "authorization.k8s.io/v1"}, {"kind", kind}, {"spec", std::move(spec)}};
}

std::vector<std::string> Strings(const Json& object, std::string_view key) {
  std::vector<std::string> strings;
  const Json* list = base::FindMember(object, key);
  if (list == nullptr || !list->is_array()) return strings;
  for (const Json& element : *list) {
    if (element.is_string()) strings.push_back(element.get<std::string>());
  }
  return strings;
}

bool Holds(const std::vector<std::string>& list, std::string_view text) {
  return std::any_of(list.begin(), list.end(), [text](const std::string& element) {
    return element == "*" || element == text;
  });
}

// kubernetes/kubernetes:pkg/apis/rbac/v1/evaluation_helpers.go, ResourceMatches.
bool HoldsResource(const std::vector<std::string>& list, std::string_view resource) {
  if (Holds(list, resource)) return true;
  const std::size_t slash = resource.find('/');
  if (slash == std::string_view::npos) return false;
  const std::string any_resource = "*" + std::string(resource.substr(slash));
  return std::find(list.begin(), list.end(), any_resource) != list.end();
}

bool CoversName(const std::vector<std::string>& names, std::string_view name) {
  return names.empty() ||
         (!name.empty() && std::find(names.begin(), names.end(), name) != names.end());
}

}  // namespace

absl::StatusOr<bool> IsAllowed(const runtime::Context& context, const KubeClient& client,
                               const ResourceAttributes& access) {
  Json attributes = {{"verb", access.verb}, {"group", access.group}, {"resource", access.resource}};
  if (!access.ns.empty()) attributes["namespace"] = access.ns;
  if (!access.subresource.empty()) attributes["subresource"] = access.subresource;
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

bool AccessRules::Allows(std::string_view verb, std::string_view group, std::string_view resource,
                         std::string_view name) const {
  return std::any_of(rules_.begin(), rules_.end(), [&](const Rule& rule) {
    return Holds(rule.verbs, verb) && Holds(rule.groups, group) &&
           HoldsResource(rule.resources, resource) && CoversName(rule.names, name);
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
  std::vector<AccessRules::Rule> rules;
  for (const Json& rule : *list) {
    rules.push_back({Strings(rule, "verbs"), Strings(rule, "apiGroups"), Strings(rule, "resources"),
                     Strings(rule, "resourceNames")});
  }
  return AccessRules(std::move(rules), base::GetBool(*status, "incomplete"),
                     base::ToValidUtf8(base::GetString(*status, "evaluationError")));
}

}  // namespace nomad_harvester::kube
