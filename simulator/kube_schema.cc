// SPDX-License-Identifier: Apache-2.0
#include "kube_schema.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <initializer_list>
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
  static const Fields kDevices = {"autoattachGraphicsDevice",
                                  "autoattachInputDevice",
                                  "autoattachMemBalloon",
                                  "autoattachPodInterface",
                                  "autoattachSerialConsole",
                                  "autoattachVSOCK",
                                  "blockMultiQueue",
                                  "clientPassthrough",
                                  "disableHotplug",
                                  "disks",
                                  "downwardMetrics",
                                  "filesystems",
                                  "gpus",
                                  "hostDevices",
                                  "inputs",
                                  "interfaces",
                                  "logSerialConsole",
                                  "networkInterfaceMultiqueue",
                                  "rng",
                                  "sound",
                                  "tpm",
                                  "useVirtioTransitional",
                                  "watchdog"};
  static const Fields kNone;
  if (path.empty()) return kTop;
  if (path == "spec") return kSpec;
  if (path == "spec.template") return kTemplate;
  if (path == "spec.template.spec") return kGuest;
  if (path == "spec.template.spec.domain") return kDomain;
  if (path == "spec.template.spec.domain.devices") return kDevices;
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

// Of such members of a part, which may be missing.
std::optional<std::string> FindBadTime(const Json* part, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    const Json* value = part == nullptr ? nullptr : base::FindMember(*part, key);
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

void FindCoreEventProblems(const Json& object, std::vector<FieldProblem>& problems) {
  const std::string ns = base::TextAt(object, {"involvedObject", "namespace"});
  // kubernetes/kubernetes:pkg/apis/core/validation/events.go, legacyValidateEvent.
  if (ns != NamespaceOf(object)) {
    problems.push_back({"involvedObject.namespace",
                        "Invalid value: \"" + ns + "\": does not match event.namespace"});
  }
}

// kubernetes/kubernetes:pkg/apis/core/validation/events.go, ValidateEventCreate: the problems have
// the names of the core group's fields.
void FindEventProblems(const Json& object, std::vector<FieldProblem>& problems) {
  const auto invalid = [&](const char* field, const std::string& message) {
    problems.push_back({field, "Invalid value: \"\": " + message});
  };
  const auto required = [&](const char* field) {
    problems.push_back({field, "Required value", "FieldValueRequired"});
  };
  const std::string ns = base::TextAt(object, {"regarding", "namespace"});
  if (ns.empty() && NamespaceOf(object) != "default" && NamespaceOf(object) != "kube-system") {
    invalid("involvedObject.namespace", "does not match event.namespace");
  }
  for (const char* field : {"reportingController", "reportingInstance", "action", "reason"}) {
    const std::string text = base::GetString(object, field);
    if (text.empty()) required(field);
    if (text.size() > 128) invalid(field, "can have at most 128 characters");
  }
  if (base::GetString(object, "note").size() > 1024) {
    invalid("message", "can have at most 1024 characters");
  }
  if (const Json* series = base::FindMember(object, "series"); series != nullptr) {
    if (base::GetInt(*series, "count") < 2) invalid("series.count", "should be at least 2");
    if (base::GetString(*series, "lastObservedTime").empty()) required("series.lastObservedTime");
  }
  if (base::GetString(object, "eventTime").empty()) required("eventTime");
  const std::string type = base::GetString(object, "type");
  if (type != "Normal" && type != "Warning") invalid("type", "has invalid value: " + type);
}

// The names of the elements of a list below spec.template.spec; absent: none.
std::vector<std::string> NamesIn(const Json* list) {
  std::vector<std::string> names;
  if (list == nullptr || !list->is_array()) return names;
  for (const Json& element : *list) names.push_back(base::GetString(element, "name"));
  return names;
}

constexpr char kDomain[] = "spec.template.spec.domain";

// validateDisks: a disk without its volume, and an order of boot that two disks have.
void FindDiskProblems(const Json& domain, const std::vector<std::string>& volumes,
                      std::vector<FieldProblem>& problems) {
  const Json* disks = base::FindPath(domain, {"devices", "disks"});
  std::set<std::int64_t> orders;
  if (disks == nullptr || !disks->is_array()) return;
  for (std::size_t i = 0; i < disks->size(); ++i) {
    const Json& disk = (*disks)[i];
    const std::string field = std::string(kDomain) + ".devices.disks[" + std::to_string(i) + "]";
    const std::string name = base::GetString(disk, "name");
    if (std::find(volumes.begin(), volumes.end(), name) == volumes.end()) {
      problems.push_back({field + ".name", field + ".Name '" + name + "' not found."});
    }
    const std::int64_t order = base::GetInt(disk, "bootOrder");
    if (order != 0 && !orders.insert(order).second) {
      problems.push_back(
          {field + ".bootOrder",
           "Boot order for " + field + ".bootOrder already set for a different device."});
    }
  }
}

// KubeVirt's definition of a VM limits both lists, before its webhooks see them (observed on
// kube-apiserver 1.32.3 with the definitions of KubeVirt 1.7.0).
bool HasTooMany(const Json& guest, std::vector<FieldProblem>& problems) {
  constexpr std::size_t kMost = 256;
  const auto check = [&](const Json* list, const std::string& name) {
    if (list == nullptr || !list->is_array() || list->size() <= kMost) return;
    const std::string field = "spec.template.spec." + name;
    problems.push_back({field,
                        "Too many: " + std::to_string(list->size()) + ": must have at most " +
                            std::to_string(kMost) + " items",
                        "FieldValueTooMany"});
  };
  check(base::FindPath(guest, {"domain", "devices", "disks"}), "domain.devices.disks");
  check(base::FindMember(guest, "volumes"), "volumes");
  return !problems.empty();
}

// kubernetes/kubernetes:staging/src/k8s.io/apimachinery/pkg/api/validation/objectmeta.go,
// ValidateAnnotationsSize: of all keys and values.
void FindAnnotationProblems(const Json& object, std::vector<FieldProblem>& problems) {
  constexpr std::size_t kMost = std::size_t{256} * 1024;
  const Json* annotations = base::FindPath(object, {"metadata", "annotations"});
  if (annotations == nullptr || !annotations->is_object()) return;
  std::size_t bytes = 0;
  for (const auto& [key, value] : annotations->items()) {
    bytes += key.size() + (value.is_string() ? value.get<std::string>().size() : 0);
  }
  if (bytes <= kMost) return;
  problems.push_back({"metadata.annotations",
                      "Too long: may not be more than " + std::to_string(kMost) + " bytes",
                      "FieldValueTooLong"});
}

// kubevirt/kubevirt:pkg/virt-api/webhooks/validating-webhook/admitters/vmi-create-admitter.go:
// validateDomainSpec, validateVolumes, validateDisks.
void FindGuestProblems(const Json& guest, std::vector<FieldProblem>& problems) {
  if (HasTooMany(guest, problems)) return;
  const std::vector<std::string> volumes = NamesIn(base::FindMember(guest, "volumes"));
  std::set<std::string> seen;
  for (std::size_t i = 0; i < volumes.size(); ++i) {
    if (seen.insert(volumes[i]).second) continue;
    const std::string field = "spec.template.spec.volumes[" + std::to_string(i) + "]";
    problems.push_back({field + ".name", field + " must not have the same Name as another one."});
  }
  const Json* domain = base::FindMember(guest, "domain");
  if (domain == nullptr) return;
  FindDiskProblems(*domain, volumes, problems);
  // Absent, it is true.
  const Json* efi = base::FindPath(*domain, {"firmware", "bootloader", "efi"});
  const Json* smm = base::FindPath(*domain, {"features", "smm"});
  const bool has_smm = smm != nullptr && base::GetBool(*smm, "enabled", true);
  if (efi != nullptr && base::GetBool(*efi, "secureBoot", true) && !has_smm) {
    problems.push_back({kDomain, std::string(kDomain) +
                                     " has EFI SecureBoot enabled. SecureBoot requires SMM, which "
                                     "is currently disabled."});
  }
}

void FindVmProblems(const Json& object, std::vector<FieldProblem>& problems) {
  const Json* strategy = base::FindPath(object, {"spec", "runStrategy"});
  if (strategy != nullptr && strategy->is_null()) strategy = nullptr;
  static const Fields kStrategies = {"Always", "Halted", "Manual", "Once", "RerunOnFailure"};
  if (strategy == nullptr && base::FindPath(object, {"spec", "running"}) == nullptr) {
    // kubevirt/kubevirt:pkg/virt-api/webhooks/validating-webhook/admitters/vms-admitter.go.
    problems.push_back({"spec.runStrategy", "RunStrategy must be specified"});
  } else if (strategy != nullptr && kStrategies.count(strategy->get<std::string>()) == 0) {
    problems.push_back(
        {"spec.runStrategy", "Invalid RunStrategy (" + strategy->get<std::string>() + ")"});
  }
  const Json* guest = base::FindPath(object, {"spec", "template", "spec"});
  if (guest == nullptr) {
    problems.push_back({"spec.template", "Required value", "FieldValueRequired"});
  } else {
    FindGuestProblems(*guest, problems);
  }
}

}  // namespace

std::vector<std::string> PruneUnknown(const ResourceDef& def, Json& object) {
  std::vector<std::string> unknown;
  if (&def == &kVms) PruneVm(object, "", unknown);
  return unknown;
}

std::optional<std::string> FindUndecodable(const ResourceDef& def, const Json& object) {
  if (&def == &kLeases) {
    return FindBadTime(base::FindMember(object, "spec"), {"acquireTime", "renewTime"});
  }
  if (&def == &kEvents) {
    if (auto bad = FindBadTime(&object, {"eventTime"})) return bad;
    return FindBadTime(base::FindMember(object, "series"), {"lastObservedTime"});
  }
  return std::nullopt;
}

std::vector<FieldProblem> FindChanges(const ResourceDef& def, const Json& before,
                                      const Json& after) {
  std::vector<FieldProblem> problems;
  if (&def != &kEvents) return problems;
  // kubernetes/kubernetes:pkg/apis/core/validation/events.go, ValidateEventUpdate.
  for (const char* field : {"regarding", "reason", "note", "type", "eventTime", "action",
                            "reportingController", "reportingInstance"}) {
    const Json value = after.value(field, Json());
    if (value == before.value(field, Json())) continue;
    const std::string_view name(field);
    problems.push_back({name == "regarding" ? "involvedObject"
                        : name == "note"    ? "message"
                                            : field,
                        "Invalid value: " + base::DumpJson(value) + ": field is immutable"});
  }
  return problems;
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
  FindAnnotationProblems(object, problems);
  if (&def == &kLeases) FindLeaseProblems(object, problems);
  if (&def == &kCoreEvents) FindCoreEventProblems(object, problems);
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
