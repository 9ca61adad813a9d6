// SPDX-License-Identifier: Apache-2.0
#include "kube_schema.h"

#include <cctype>
#include <set>
#include <string_view>

#include "nomad_harvester/base/encoding.h"
#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/parse.h"

#include "kube_store.h"

namespace nomad_harvester::simulator {
namespace {

using Fields = std::set<std::string_view>;

// kubevirt/kubevirt:staging/src/kubevirt.io/api/core/v1/{types,schema}.go, as deep as misspelt
// fields are likely.
const Fields& VmFields(std::string_view path) {
  static const Fields kTop = {"apiVersion", "kind", "metadata", "spec", "status"};
  static const Fields kSpec = {
      "dataVolumeTemplates", "instancetype", "preference",           "running",
      "runStrategy",         "template",     "updateVolumesStrategy"};
  static const Fields kTemplate = {"metadata", "spec"};
  static const Fields kGuest = {"accessCredentials",
                                "affinity",
                                "architecture",
                                "dnsConfig",
                                "dnsPolicy",
                                "domain",
                                "evictionStrategy",
                                "hostname",
                                "livenessProbe",
                                "networks",
                                "nodeSelector",
                                "priorityClassName",
                                "readinessProbe",
                                "schedulerName",
                                "startStrategy",
                                "subdomain",
                                "terminationGracePeriodSeconds",
                                "tolerations",
                                "topologySpreadConstraints",
                                "volumes"};
  static const Fields kDomain = {"chassis",        "clock",    "cpu",       "devices",
                                 "features",       "firmware", "ioThreads", "ioThreadsPolicy",
                                 "launchSecurity", "machine",  "memory",    "resources"};
  static const Fields kNone;
  if (path.empty()) return kTop;
  if (path == "spec") return kSpec;
  if (path == "spec.template") return kTemplate;
  if (path == "spec.template.spec") return kGuest;
  if (path == "spec.template.spec.domain") return kDomain;
  return kNone;
}

void PruneVm(Json& object, const std::string& path, std::vector<std::string>& unknown) {
  const Fields& known = VmFields(path);
  if (known.empty() || !object.is_object()) return;
  for (auto member = object.begin(); member != object.end();) {
    const std::string inner = path.empty() ? member.key() : path + "." + member.key();
    if (known.count(member.key()) == 0) {
      unknown.push_back(inner);
      member = object.erase(member);
      continue;
    }
    PruneVm(member.value(), inner, unknown);
    ++member;
  }
}

// metav1.MicroTime requires exactly six fractional digits
// (kubernetes/kubernetes:staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/micro_time.go).
bool IsMicroTime(const std::string& text) {
  constexpr std::string_view kShape = "0000-00-00T00:00:00.000000";
  if (text.size() <= kShape.size() || !base::ParseRfc3339(text).ok()) return false;
  for (std::size_t i = 0; i < kShape.size(); ++i) {
    const bool digit = std::isdigit(static_cast<unsigned char>(text[i])) != 0;
    if (kShape[i] == '0' ? !digit : text[i] != kShape[i]) return false;
  }
  return std::isdigit(static_cast<unsigned char>(text[kShape.size()])) == 0;
}

std::optional<std::string> FindBadTime(const Json& object) {
  for (const char* key : {"acquireTime", "renewTime"}) {
    const Json* value = base::FindPath(object, {"spec", key});
    if (value == nullptr || value->is_null()) continue;
    const std::string text = value->is_string() ? value->get<std::string>() : value->dump();
    if (value->is_string() && IsMicroTime(text)) continue;
    const std::size_t dot = text.find('.');
    const std::string rest = dot == std::string::npos ? "Z" : text.substr(dot);
    return "parsing time \"" + text +
           "\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"" + rest +
           "\" as \".000000\"";
  }
  return std::nullopt;
}

void FindLeaseProblems(const Json& object, std::vector<FieldProblem>& problems) {
  const Json* spec = base::FindMember(object, "spec");
  if (spec == nullptr) return;
  // kubernetes/kubernetes:pkg/apis/coordination/validation/validation.go.
  if (base::FindMember(*spec, "leaseDurationSeconds") != nullptr &&
      base::GetInt(*spec, "leaseDurationSeconds") <= 0) {
    problems.push_back({"spec.leaseDurationSeconds",
                        "Invalid value: " + base::DumpJson((*spec)["leaseDurationSeconds"]) +
                            ": must be greater than 0"});
  }
  if (base::GetInt(*spec, "leaseTransitions") < 0) {
    problems.push_back(
        {"spec.leaseTransitions", "Invalid value: " + base::DumpJson((*spec)["leaseTransitions"]) +
                                      ": must be greater than or equal to 0"});
  }
}

void FindEventProblems(const Json& object, std::vector<FieldProblem>& problems) {
  const Json* involved = base::FindMember(object, "involvedObject");
  const std::string ns = involved == nullptr ? "" : base::GetString(*involved, "namespace");
  // kubernetes/kubernetes:pkg/apis/core/validation/events.go, legacyValidateEvent.
  if (ns != NamespaceOf(object)) {
    problems.push_back({"involvedObject.namespace",
                        "Invalid value: \"" + ns + "\": does not match event.namespace"});
  }
}

void FindVmProblems(const Json& object, std::vector<FieldProblem>& problems) {
  const Json* strategy = base::FindPath(object, {"spec", "runStrategy"});
  if (strategy != nullptr && !strategy->is_string()) {
    const std::string type = strategy->is_number() ? "integer" : strategy->type_name();
    problems.push_back({"spec.runStrategy",
                        "Invalid value: \"" + type +
                            "\": spec.runStrategy in body must be of type string: \"" + type + "\"",
                        "FieldValueTypeInvalid"});
    return;
  }
  static const Fields kStrategies = {"Always", "Halted", "Manual", "Once", "RerunOnFailure"};
  if (strategy == nullptr && base::FindPath(object, {"spec", "running"}) == nullptr) {
    // kubevirt/kubevirt:pkg/virt-api/webhooks/validating-webhook/admitters/vms-admitter.go.
    problems.push_back({"spec.runStrategy", "RunStrategy must be specified"});
  } else if (strategy != nullptr && kStrategies.count(strategy->get<std::string>()) == 0) {
    problems.push_back(
        {"spec.runStrategy", "Invalid RunStrategy (" + strategy->get<std::string>() + ")"});
  }
  if (base::FindPath(object, {"spec", "template", "spec"}) == nullptr) {
    problems.push_back({"spec.template", "Required value", "FieldValueRequired"});
  }
}

}  // namespace

std::vector<std::string> PruneUnknown(const ResourceDef& def, Json& object) {
  std::vector<std::string> unknown;
  if (&def == &kVms) PruneVm(object, "", unknown);
  return unknown;
}

std::optional<std::string> FindUndecodable(const ResourceDef& def, const Json& object) {
  if (&def == &kLeases) return FindBadTime(object);
  return std::nullopt;
}

std::vector<FieldProblem> FindProblems(const ResourceDef& def, const Json& object) {
  std::vector<FieldProblem> problems;
  const std::string name = NameOf(object);
  if (!base::IsDnsSubdomain(name)) {
    problems.push_back(
        {"metadata.name", "Invalid value: \"" + name +
                              "\": a lowercase RFC 1123 subdomain must consist of lower "
                              "case alphanumeric characters, '-' or '.', and must start and end "
                              "with an alphanumeric "
                              "character"});
  }
  if (&def == &kLeases) FindLeaseProblems(object, problems);
  if (&def == &kEvents) FindEventProblems(object, problems);
  if (&def == &kVms) FindVmProblems(object, problems);
  return problems;
}

void SetDefaults(const ResourceDef& def, Json& object) {
  if (&def != &kSecrets) return;
  if (base::FindMember(object, "type") == nullptr) object["type"] = "Opaque";
  const auto texts = object.find("stringData");
  if (texts == object.end()) return;
  const Json plain = *texts;
  object.erase("stringData");
  if (!plain.is_object()) return;
  for (const auto& [key, value] : plain.items()) {
    if (value.is_string()) object["data"][key] = base::Base64Encode(value.get<std::string>());
  }
}

}  // namespace nomad_harvester::simulator
