// SPDX-License-Identifier: Apache-2.0
// SelfSubjectAccessReview and SelfSubjectRulesReview.
#include "nomad_harvester/base/json.h"

#include "kube_api.h"
#include "kube_reply.h"

namespace nomad_harvester::simulator {
namespace {

constexpr const char* kVerbs[] = {"get", "list", "watch", "create", "update", "patch", "delete"};

Json Attributes(const Json& question) {
  const Json* attributes = base::FindPath(question, {"spec", "resourceAttributes"});
  return attributes == nullptr ? Json::object() : *attributes;
}

}  // namespace

// If nothing is forbidden, one rule grants everything, as for cluster-admin; otherwise each
// resource has a rule with its remaining verbs.
Json KubeApi::AccessRules(const std::string& ns) const {
  Json rules = Json::array();
  const auto add = [&rules](Json verbs, std::string_view group, std::string_view resource) {
    rules.push_back({{"verbs", std::move(verbs)},
                     {"apiGroups", Json::array({group})},
                     {"resources", Json::array({resource})}});
  };
  if (forbidden.empty()) {
    add(Json::array({"*"}), "*", "*");
    return rules;
  }
  const ResourceDef* def = nullptr;
  for (std::size_t i = 0; (def = ResourceAt(i)) != nullptr; ++i) {
    Json verbs = Json::array();
    for (const char* verb : kVerbs) {
      if (!IsForbidden(verb, std::string(def->plural), ns)) verbs.push_back(verb);
    }
    if (!verbs.empty()) add(verbs, def->group, def->plural);
  }
  return rules;
}

http::HttpResponse KubeApi::Review(const KubeCall& call, const http::HttpRequest& request) const {
  auto question = base::ParseJson(request.body, "the review");
  if (!question.ok()) return StatusReply(400, "BadRequest", "the review is not JSON");
  Json answer = *std::move(question);
  if (call.review == "selfsubjectaccessreviews") {
    const Json attributes = Attributes(answer);
    const bool allowed =
        !IsForbidden(base::GetString(attributes, "verb"), base::GetString(attributes, "resource"),
                     base::GetString(attributes, "namespace"));
    answer["status"] = {{"allowed", allowed}};
    return JsonReply(201, answer);
  }
  if (call.review == "selfsubjectrulesreviews") {
    const std::string ns = base::TextAt(answer, {"spec", "namespace"});
    answer["status"] = {{"resourceRules", rules_incomplete ? Json::array() : AccessRules(ns)},
                        {"nonResourceRules", Json::array()},
                        {"incomplete", rules_incomplete}};
    // kubernetes/kubernetes:staging/src/k8s.io/apiserver/plugin/pkg/authorizer/webhook/webhook.go,
    // RulesFor.
    if (rules_incomplete) {
      answer["status"]["evaluationError"] =
          "webhook authorizer does not support user rule resolution";
    }
    return JsonReply(201, answer);
  }
  return TextReply(404, "404 page not found\n");
}

}  // namespace nomad_harvester::simulator
