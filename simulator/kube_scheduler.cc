// SPDX-License-Identifier: Apache-2.0
// kubernetes/kubernetes:pkg/scheduler/framework/plugins: nodeunschedulable, tainttoleration,
// nodeaffinity, noderesources, interpodaffinity; each has its own words for its refusal.
#include "kube_scheduler.h"

#include <algorithm>
#include <cstdint>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/parse.h"

namespace nomad_harvester::simulator {
namespace {

constexpr char kRequired[] = "requiredDuringSchedulingIgnoredDuringExecution";

// kubernetes/kubernetes:staging/src/k8s.io/api/core/v1/toleration.go, ToleratesTaint.
bool IsTolerated(const Json& taint, const Json& instance) {
  const Json& tolerations = ElementsAt(instance, {"spec", "tolerations"});
  return std::any_of(tolerations.begin(), tolerations.end(), [&](const Json& toleration) {
    const std::string effect = base::GetString(toleration, "effect");
    const std::string key = base::GetString(toleration, "key");
    if (!effect.empty() && effect != base::GetString(taint, "effect")) return false;
    if (!key.empty() && key != base::GetString(taint, "key")) return false;
    return base::GetString(toleration, "operator") == "Exists" ||
           base::GetString(toleration, "value") == base::GetString(taint, "value");
  });
}

bool IsCordoned(const Json& host, const Json& instance) {
  const Json* const spec = base::FindMember(host, "spec");
  if (spec == nullptr || !base::GetBool(*spec, "unschedulable")) return false;
  const Json taint = {{"key", "node.kubernetes.io/unschedulable"}, {"effect", "NoSchedule"}};
  return !IsTolerated(taint, instance);
}

const Json* UntoleratedTaint(const Json& host, const Json& instance) {
  for (const Json& taint : ElementsAt(host, {"spec", "taints"})) {
    const std::string effect = base::GetString(taint, "effect");
    const bool repels = effect == "NoSchedule" || effect == "NoExecute";
    if (repels && !IsTolerated(taint, instance)) return &taint;
  }
  return nullptr;
}

// Of a label, or of the field metadata.name; null: the host has no such label.
bool Meets(const Json* value, const Json& expression) {
  const std::string op = base::GetString(expression, "operator");
  const std::vector<std::string> values = base::GetStrings(expression, "values");
  const std::string text = value != nullptr && value->is_string() ? value->get<std::string>() : "";
  const bool is_listed = std::find(values.begin(), values.end(), text) != values.end();
  if (op == "Exists") return value != nullptr;
  if (op == "DoesNotExist") return value == nullptr;
  if (op == "NotIn") return value == nullptr || !is_listed;
  if (value == nullptr) return false;
  if (op == "In") return is_listed;
  const auto number = base::ParseInt(text);
  const auto bound = base::ParseInt(values.empty() ? "" : values.front());
  if (!number.ok() || !bound.ok()) return false;
  return op == "Gt" ? *number > *bound : *number < *bound;
}

bool MeetsTerm(const Json& host, const Json& term) {
  const Json& labels = ElementsAt(term, {"matchExpressions"});
  const Json& fields = ElementsAt(term, {"matchFields"});
  if (labels.empty() && fields.empty()) return false;
  return std::all_of(labels.begin(), labels.end(),
                     [&](const Json& expression) {
                       const std::string key = base::GetString(expression, "key");
                       return Meets(base::FindPath(host, {"metadata", "labels", key}), expression);
                     }) &&
         std::all_of(fields.begin(), fields.end(), [&](const Json& expression) {
           return Meets(base::FindPath(host, {"metadata", "name"}), expression);
         });
}

bool MatchesSelectors(const Json& host, const Json& instance) {
  // KubeVirt's own selector: its label says false while its agent on the host does not answer.
  if (base::TextAt(host, {"metadata", "labels", "kubevirt.io/schedulable"}) == "false")
    return false;
  const Json* const selector = base::FindPath(instance, {"spec", "nodeSelector"});
  if (selector != nullptr &&
      !HasLabels(host["metadata"].value("labels", Json::object()), *selector)) {
    return false;
  }
  const Json* const required =
      base::FindPath(instance, {"spec", "affinity", "nodeAffinity", kRequired});
  if (required == nullptr) return true;
  const Json& terms = ElementsAt(*required, {"nodeSelectorTerms"});
  return std::any_of(terms.begin(), terms.end(),
                     [&](const Json& term) { return MeetsTerm(host, term); });
}

}  // namespace

bool HasLabels(const Json& labels, const Json& wanted) {
  for (const auto& [key, value] : wanted.items()) {
    const Json* const label = base::FindMember(labels, key);
    if (label == nullptr || *label != value) return false;
  }
  return true;
}

std::vector<Json> LabelsToAvoid(const Json& instance) {
  std::vector<Json> all;
  for (const Json& term :
       ElementsAt(instance, {"spec", "affinity", "podAntiAffinity", kRequired})) {
    const Json* const labels = base::FindPath(term, {"labelSelector", "matchLabels"});
    const bool by_host = base::GetString(term, "topologyKey") == "kubernetes.io/hostname";
    if (by_host && labels != nullptr) all.push_back(*labels);
  }
  return all;
}

std::vector<std::string> ReasonsAgainst(const Json& host, const Json& instance,
                                        const Requests& used, const Requests& wanted) {
  if (IsCordoned(host, instance)) return {"node(s) were unschedulable"};
  if (const Json* const taint = UntoleratedTaint(host, instance); taint != nullptr) {
    return {"node(s) had untolerated taint {" + base::GetString(*taint, "key") + ": " +
            base::GetString(*taint, "value") + "}"};
  }
  if (!MatchesSelectors(host, instance)) {
    return {"node(s) didn't match Pod's node affinity/selector"};
  }
  std::vector<std::string> reasons;
  const Requests allocatable = AllocatableOf(host);
  const auto amount_in = [](const Requests& requests, const std::string& resource) {
    const auto found = requests.find(resource);
    return found == requests.end() ? std::int64_t{0} : found->second;
  };
  for (const auto& [resource, amount] : wanted) {
    const std::int64_t left = amount_in(allocatable, resource) - amount_in(used, resource);
    if (amount <= 0 || amount <= left) continue;
    reasons.push_back(resource == "pods" ? "Too many pods" : "Insufficient " + resource);
  }
  return reasons;
}

}  // namespace nomad_harvester::simulator
