// SPDX-License-Identifier: Apache-2.0
// The fields read from Kubernetes objects: common metadata, and those of VirtualMachines, their
// instances and ResourceQuotas.
#ifndef NOMAD_HARVESTER_HARVESTER_OBJECT_FIELDS_H_
#define NOMAD_HARVESTER_HARVESTER_OBJECT_FIELDS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nomad_harvester/base/json_fields.h"
#include "nomad_harvester/base/time.h"
#include "nomad_harvester/harvester/quota.h"
#include "nomad_harvester/harvester/virtual_machine.h"
#include "nomad_harvester/kube/client.h"
#include "nomad_harvester/runtime/context.h"

#include "absl/status/status.h"

namespace nomad_harvester::harvester {

// The key of a VM's Secret that holds only the introduction token; KubeVirt reads other keys.
inline constexpr char kIntroTokenKey[] = "nomad-intro-token";
// The annotation of a pod with the name of its VM
// (kubevirt/kubevirt:pkg/virt-controller/services/template.go).
inline constexpr char kVmOfPod[] = "kubevirt.io/domain";

template <typename T>
using FieldsOf = std::vector<typename base::JsonFields<T>::Field>;

// Nullopt if the value is not an RFC 3339 time.
std::optional<base::WallTime> TimeOf(const base::JsonEvent& event);

// The fields of `more`, and those of a T's ObjectMetadata.
template <typename T>
FieldsOf<T> WithMetadata(FieldsOf<T> more) {
  using base::JsonEvent;
  const FieldsOf<T> metadata = {
      {"metadata.namespace", &base::SetText<&ObjectMetadata::ns, T>},
      {"metadata.name", &base::SetText<&ObjectMetadata::name, T>},
      {"metadata.uid", &base::SetText<&ObjectMetadata::uid, T>},
      {"metadata.resourceVersion", &base::SetText<&ObjectMetadata::resource_version, T>},
      {"metadata.creationTimestamp",
       [](T& object, const JsonEvent& e) {
         object.created_at = TimeOf(e).value_or(base::WallTime{});
       }},
      {"metadata.deletionTimestamp",
       [](T& object, const JsonEvent& e) { object.deleted_at = TimeOf(e); }},
      {"metadata.labels.*", &base::PutText<&ObjectMetadata::labels, T>},
      {"metadata.annotations.*", &base::PutText<&ObjectMetadata::annotations, T>},
  };
  more.insert(more.end(), metadata.begin(), metadata.end());
  return more;
}
const base::JsonFields<ObjectMetadata>& MetadataFields();

template <typename T, std::string Condition::*kMember>
void SetOfCondition(T& object, const base::JsonEvent& event) {
  if (!object.conditions.empty()) base::SetText<kMember>(object.conditions.back(), event);
}

// The fields of `more`, and those that read status.conditions into T::conditions.
template <typename T>
FieldsOf<T> WithConditions(FieldsOf<T> more) {
  using base::JsonEvent;
  const FieldsOf<T> conditions = {
      {"status.conditions",
       [](T& object, const JsonEvent& e) {
         if (e.kind == JsonEvent::Kind::kObject) object.conditions.emplace_back();
       }},
      {"status.conditions.type", &SetOfCondition<T, &Condition::type>},
      {"status.conditions.status", &SetOfCondition<T, &Condition::status>},
      {"status.conditions.reason", &SetOfCondition<T, &Condition::reason>},
      {"status.conditions.message", &SetOfCondition<T, &Condition::message>},
      {"status.conditions.lastTransitionTime",
       [](T& object, const JsonEvent& e) {
         if (!object.conditions.empty()) object.conditions.back().last_transition = TimeOf(e);
       }},
  };
  more.insert(more.end(), conditions.begin(), conditions.end());
  return more;
}
const Condition* FindCondition(const std::vector<Condition>& conditions, std::string_view type);
// For a VM or instance: Failure and Paused report a fault when True, all others when False.
bool ReportsFault(const Condition& condition);

// A quantity in thousandths. The API server writes quantities in canonical form: fractions are
// whole thousandths, "m" (kubernetes/apimachinery:pkg/api/resource/quantity.go). Nullopt: it cannot
// be read, or is too large.
std::optional<std::int64_t> Thousandths(std::string_view quantity);

// Adds amounts, none of which is negative, by resource; a sum that would overflow is the largest
// number.
void AddAmounts(const std::map<std::string, std::int64_t>& more,
                std::map<std::string, std::int64_t>* amounts);

// Parses the annotations; an unreadable member counts as absent.
const base::JsonFields<VirtualMachine>& VirtualMachineFields();

const base::JsonFields<VirtualMachineInstance>& InstanceFields();

struct ResourceQuotaRecord : ResourceQuota {
  bool scoped = false;
  std::map<std::string, std::string> hard;  // by resource, as written
  std::map<std::string, std::string> used;
};
const base::JsonFields<ResourceQuotaRecord>& ResourceQuotaFields();

// "a, b, c", or only the first names of a long list.
std::string Listed(const std::vector<std::string>& names);

// Turns `read`, the result of reading a required object, into OK or an error that begins with
// `what` and its name. If the object is missing, NOT_FOUND names the existing ones: "network
// default/web does not exist; the namespace has: a, b". It then blocks for a list; if the list
// fails or is not permitted, the names are omitted.
absl::Status Existing(const absl::Status& read, const kube::KubeClient& client,
                      const runtime::Context& context, const kube::ResourceType& type,
                      std::string_view what, const std::string& ns, const std::string& name);

}  // namespace nomad_harvester::harvester

#endif  // NOMAD_HARVESTER_HARVESTER_OBJECT_FIELDS_H_
