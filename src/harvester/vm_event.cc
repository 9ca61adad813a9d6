// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/harvester/vm_event.h"

#include <cstddef>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/secret.h"
#include "nomad_harvester/harvester/metadata.h"
#include "nomad_harvester/kube/resource_type.h"

#include "nlohmann/json.hpp"

namespace nomad_harvester::harvester {
namespace {

using nlohmann::json;

// In bytes (kubernetes/kubernetes:pkg/apis/core/validation/events.go: ReasonLengthLimit,
// ActionLengthLimit, ReportingInstanceLengthLimit and NoteLengthLimit).
constexpr std::size_t kWordLimit = 128;
constexpr std::size_t kNoteLimit = 1024;

json SeriesOf(const EventSeries& series) {
  return {{"count", series.count}, {"lastObservedTime", base::FormatRfc3339Micros(series.last)}};
}

}  // namespace

json BuildVmEvent(const VmEvent& event, const std::string& ns, const std::string& name,
                  const std::string& instance, base::WallTime at, const EventSeries& series) {
  json object = {{"apiVersion", "events.k8s.io/v1"},
                 {"kind", std::string(kube::kEvents.kind)},
                 {"metadata", {{"name", name}, {"namespace", ns}}},
                 {"eventTime", base::FormatRfc3339Micros(at)},
                 {"reportingController", kManagedByValue},
                 {"reportingInstance", base::ToShortUtf8(instance, kWordLimit)},
                 {"action", base::ToShortUtf8(event.action, kWordLimit)},
                 {"reason", base::ToShortUtf8(event.reason, kWordLimit)},
                 {"regarding",
                  {{"apiVersion", "kubevirt.io/v1"},
                   {"kind", std::string(kube::kVirtualMachines.kind)},
                   {"namespace", ns},
                   {"name", event.vm},
                   {"uid", event.uid}}},
                 {"note", base::ToShortUtf8(base::WithoutSecrets(event.note), kNoteLimit)},
                 {"type", event.warning ? "Warning" : "Normal"}};
  if (series.count > 1) object["series"] = SeriesOf(series);
  return object;
}

json BuildEventSeriesPatch(const EventSeries& series) { return {{"series", SeriesOf(series)}}; }

}  // namespace nomad_harvester::harvester
