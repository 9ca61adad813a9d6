// SPDX-License-Identifier: Apache-2.0
// VmStore: reads Kubernetes Events about a VM and its volumes.
//
// The Events are read through the group events.k8s.io. The API server returns the Events of the
// core group in that form, too, because both groups share one storage
// (kubernetes/kubernetes:pkg/registry/events/rest/storage_events.go).
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/harvester/vm_store.h"

#include "object_fields.h"

namespace nomad_harvester::harvester {
namespace {

// The API server's limit of a note (kubernetes/kubernetes:pkg/apis/core/validation/events.go,
// NoteLengthLimit). The text of a core Event may be longer.
constexpr std::size_t kMaxOfNote = 1024;

struct EventRecord {
  std::string kind;  // kind of the object concerned
  std::string name;
  base::WallTime created{};
  SeenEvent event;
};

void SetTime(EventRecord& record, const base::JsonEvent& event) {
  if (const auto at = TimeOf(event); at.has_value()) {
    record.event.last = std::max(record.event.last, *at);
  }
}

void SetCount(EventRecord& record, const base::JsonEvent& event) {
  if (event.kind == base::JsonEvent::Kind::kInt) {
    record.event.count = std::max(record.event.count, event.integer);
  }
}

template <auto kMember>
void SetEventText(EventRecord& record, const base::JsonEvent& event) {
  if (event.kind == base::JsonEvent::Kind::kText) record.event.*kMember = event.text;
}

void Complete(EventRecord& record, const base::JsonEvent& /*end*/) {
  if (record.event.last == base::WallTime{}) record.event.last = record.created;
  record.event.note = base::ToShortUtf8(record.event.note, kMaxOfNote);
}

// Controllers that write Events of the core group leave eventTime and series empty
// (kubernetes/kubernetes:pkg/apis/events/v1/conversion.go, Convert_core_Event_To_v1_Event).
const base::JsonFields<EventRecord>& EventFields() {
  static const auto* const kFields = new base::JsonFields<EventRecord>({
      {"regarding.kind", &base::SetText<&EventRecord::kind>},
      {"regarding.name", &base::SetText<&EventRecord::name>},
      {"type", &SetEventText<&SeenEvent::type>},
      {"reason", &SetEventText<&SeenEvent::reason>},
      {"note", &SetEventText<&SeenEvent::note>},
      {"metadata.creationTimestamp",
       [](EventRecord& record, const base::JsonEvent& event) {
         record.created = TimeOf(event).value_or(base::WallTime{});
       }},
      {"eventTime", &SetTime},
      {"deprecatedLastTimestamp", &SetTime},
      {"series.lastObservedTime", &SetTime},
      {"deprecatedCount", &SetCount},
      {"series.count", &SetCount},
      {"", &Complete},
  });
  return *kFields;
}

// "ProvisioningSucceeded" of a claim (kubernetes-sigs/sig-storage-lib-external-provisioner:
// controller/controller.go), "ImportSucceeded" or "CloneSucceeded" of a DataVolume
// (kubevirt/containerized-data-importer:pkg/controller/datavolume).
bool IsSuccess(const SeenEvent& event) { return event.reason.ends_with("Succeeded"); }

// Ignores the warning about two controllers writing to an object at once, because they retry
// (kubernetes/apiserver:pkg/registry/generic/registry/store.go, OptimisticLockErrorMsg). Nearly
// every claim in Harvester has such a warning.
bool IsWarning(const SeenEvent& event) {
  return event.type == "Warning" &&
         event.note.find("the object has been modified") == std::string::npos;
}

}  // namespace

absl::StatusOr<std::map<std::string, std::string>> VmStore::ListVolumeWarnings(
    const runtime::Context& context) const {
  std::map<std::string, SeenEvent> last;
  std::map<std::string, base::WallTime> came;
  for (const char* const kind : {"PersistentVolumeClaim", "DataVolume"}) {
    // kubernetes/kubernetes:pkg/apis/events/v1/conversion.go, AddFieldLabelConversionsForEvent.
    const kube::Selector selector{.fields = std::string("regarding.kind=") + kind};
    NH_ASSIGN_OR_RETURN(auto list, client_->List<EventRecord>(context, kube::kEvents, ns_, selector,
                                                              EventFields()));
    for (EventRecord& record : list.value) {
      if (IsSuccess(record.event)) {
        base::WallTime& at = came[record.name];
        at = std::max(at, record.event.last);
      } else if (IsWarning(record.event)) {
        SeenEvent& known = last[record.name];
        if (record.event.last >= known.last) known = std::move(record.event);
      }
    }
  }
  std::map<std::string, std::string> texts;
  for (const auto& [volume, warning] : last) {
    const auto at = came.find(volume);
    if (at != came.end() && at->second >= warning.last) continue;
    texts[volume] = warning.reason + (warning.note.empty() ? "" : ": " + warning.note);
  }
  return texts;
}

absl::StatusOr<std::vector<SeenEvent>> VmStore::ListEventsOf(const runtime::Context& context,
                                                             const std::string& vm) const {
  NH_ASSIGN_OR_RETURN(
      auto list, client_->List<EventRecord>(context, kube::kEvents, ns_,
                                            {.fields = "regarding.name=" + vm}, EventFields()));
  std::vector<SeenEvent> events;
  events.reserve(list.value.size());
  for (EventRecord& record : list.value) {
    // A VM and its instance have the same name, and so may other objects.
    if (record.kind != kube::kVirtualMachines.kind &&
        record.kind != kube::kVirtualMachineInstances.kind) {
      continue;
    }
    events.push_back(std::move(record.event));
  }
  std::stable_sort(events.begin(), events.end(),
                   [](const SeenEvent& a, const SeenEvent& b) { return a.last < b.last; });
  return events;
}

}  // namespace nomad_harvester::harvester
