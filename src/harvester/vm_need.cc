// SPDX-License-Identifier: Apache-2.0
// What the pod of a VM asks of its host.
#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/harvester/host_room.h"
#include "nomad_harvester/harvester/metadata.h"

#include "launcher.h"
#include "nlohmann/json.hpp"
#include "object_fields.h"

namespace nomad_harvester::harvester {
namespace {

using nlohmann::json;

constexpr char kRequired[] = "requiredDuringSchedulingIgnoredDuringExecution";

// The elements of a list that may be missing.
const json& ElementsAt(const json& object, std::initializer_list<std::string_view> path) {
  static const json kNone = json::array();
  const json* const list = base::FindPath(object, path);
  return list != nullptr && list->is_array() ? *list : kNone;
}

// kubevirt/kubevirt:pkg/util/hardware/hw_utils.go, GetNumberOfVCPUs: a count that is missing does
// not matter. Without counts, what is limited or requested.
std::int64_t VirtualCpus(const json& domain) {
  constexpr std::int64_t kMost = 100'000;
  std::int64_t cpus = 0;
  if (const json* const cpu = base::FindMember(domain, "cpu"); cpu != nullptr) {
    for (const char* const count : {"cores", "sockets", "threads"}) {
      const std::int64_t number = std::clamp<std::int64_t>(base::GetInt(*cpu, count), 0, kMost);
      if (number > 0) cpus = std::min(std::max<std::int64_t>(cpus, 1) * number, kMost);
    }
    return std::max<std::int64_t>(cpus, 1);
  }
  for (const char* const kind : {"limits", "requests"}) {
    const auto given = base::ParseQuantity(base::TextAt(domain, {"resources", kind, "cpu"}));
    if (given.ok() && *given > 0) return std::min(*given, kMost);
  }
  return 1;
}

// The devices that are passed through, by resource
// (kubevirt/kubevirt:pkg/virt-controller/services/renderresources.go, WithHostDevicesDevicePlugins
// and WithGPUsDevicePlugins).
Amounts DevicesOf(const json& domain) {
  Amounts devices;
  for (const char* const kind : {"hostDevices", "gpus"}) {
    for (const json& device : ElementsAt(domain, {"devices", kind})) {
      const std::string resource = base::GetString(device, "deviceName");
      if (!resource.empty()) ++devices[resource];
    }
  }
  return devices;
}

// The parts of the launcher's overhead that a policy or a template decides
// (kubevirt/kubevirt:pkg/virt-controller/services/renderresources.go, GetMemoryOverhead).
std::int64_t OverheadOf(const json& domain, std::int64_t requested) {
  const json* const devices = base::FindMember(domain, "devices");
  const json* const cpu = base::FindMember(domain, "cpu");
  std::int64_t more = 0;
  if (!DevicesOf(domain).empty()) more += kOverheadOfVfio;
  if (cpu != nullptr && base::GetBool(*cpu, "dedicatedCpuPlacement")) more += 100 * kMi;
  const json* const tpm = base::FindPath(domain, {"devices", "tpm"});
  if (tpm != nullptr && base::GetBool(*tpm, "enabled", true)) more += 53 * kMi;
  const bool has_display =
      devices == nullptr || base::GetBool(*devices, "autoattachGraphicsDevice", true);
  if (!has_display) more -= 32 * kMi;
  return LauncherOverhead(requested, VirtualCpus(domain), more);
}

// kubevirt/kubevirt:pkg/virt-controller/services/serialconsolelog.go, isSerialConsoleLogEnabled.
bool KeepsConsoleLog(const json& domain) {
  const json* const devices = base::FindMember(domain, "devices");
  return devices == nullptr || (base::GetBool(*devices, "autoattachSerialConsole", true) &&
                                base::GetBool(*devices, "logSerialConsole", true));
}

// Harvester's webhook derives the request from the limit. Without one, KubeVirt's default of
// cpuAllocationRatio is used (kubevirt/kubevirt:pkg/virt-config/virt-config.go).
std::int64_t RequestedCpu(const json& domain) {
  constexpr std::int64_t kOfEachCpu = 100;
  constexpr std::int64_t kMost = 1'000'000'000;
  const auto given = Thousandths(base::TextAt(domain, {"resources", "requests", "cpu"}));
  return std::clamp<std::int64_t>(given.value_or(VirtualCpus(domain) * kOfEachCpu), 0, kMost);
}

// The memory of a guest with huge pages is a resource of its own, and the pod's memory the rest
// (kubevirt/kubevirt:pkg/virt-controller/services/renderresources.go, WithHugePages).
void MoveToHugePages(const json& domain, Amounts* amounts) {
  const std::string size = base::TextAt(domain, {"memory", "hugepages", "pageSize"});
  if (size.empty()) return;
  const auto guest = base::ParseQuantity(base::TextAt(domain, {"memory", "guest"}));
  std::int64_t& memory = (*amounts)[kMemory];
  const std::int64_t moved = std::min(memory, guest.value_or(memory));
  (*amounts)["hugepages-" + size] = moved;
  memory -= moved;
}

std::vector<HostExpression> ExpressionsIn(const json& term) {
  std::vector<HostExpression> expressions;
  for (const char* const kind : {"matchExpressions", "matchFields"}) {
    for (const json& expression : ElementsAt(term, {kind})) {
      expressions.push_back({.key = base::GetString(expression, "key"),
                             .op = base::GetString(expression, "operator"),
                             .values = base::GetStrings(expression, "values"),
                             .is_field = kind == std::string_view("matchFields")});
    }
  }
  return expressions;
}

// Whether a term of required anti-affinity is the one that host_spread = "required" writes.
bool KeepsPoolApart(const json& guest, const std::string& pool) {
  const json ours = {{"labelSelector", {{"matchLabels", {{kPoolLabel, pool}}}}},
                     {"topologyKey", "kubernetes.io/hostname"}};
  const json& terms = ElementsAt(guest, {"affinity", "podAntiAffinity", kRequired});
  return std::find(terms.begin(), terms.end(), ours) != terms.end();
}

void ReadPlacement(const json& guest, VmNeed* need) {
  if (const json* const labels = base::FindMember(guest, "nodeSelector");
      labels != nullptr && labels->is_object()) {
    for (const auto& [key, value] : labels->items()) {
      if (value.is_string()) need->node_selector.emplace(key, value.get<std::string>());
    }
  }
  for (const json& term :
       ElementsAt(guest, {"affinity", "nodeAffinity", kRequired, "nodeSelectorTerms"})) {
    std::vector<HostExpression> expressions = ExpressionsIn(term);
    if (!expressions.empty()) need->terms.push_back(std::move(expressions));
  }
  for (const json& toleration : ElementsAt(guest, {"tolerations"})) {
    need->tolerations.push_back({.key = base::GetString(toleration, "key"),
                                 .op = base::GetString(toleration, "operator"),
                                 .value = base::GetString(toleration, "value"),
                                 .effect = base::GetString(toleration, "effect")});
  }
  need->one_per_host = KeepsPoolApart(guest, need->pool);
}

}  // namespace

absl::StatusOr<VmNeed> NeedOf(const json& vm) {
  constexpr std::int64_t kMostMemory = std::int64_t{1} << 60;
  const json* const guest = base::FindPath(vm, {"spec", "template", "spec"});
  const json* const domain = guest == nullptr ? nullptr : base::FindMember(*guest, "domain");
  const json* const resources =
      domain == nullptr ? nullptr : base::FindMember(*domain, "resources");
  const auto requested = base::ParseQuantity(
      resources == nullptr ? "" : base::TextAt(*resources, {"requests", "memory"}));
  if (resources == nullptr || !requested.ok()) {
    return base::InvalidArgument(
        "VirtualMachine " + base::TextAt(vm, {"metadata", "name"}) +
        " requests no memory (spec.template.spec.domain.resources.requests): Harvester's webhook "
        "sets it, so check that the webhook runs");
  }
  const std::int64_t memory = std::min(*requested, kMostMemory);
  VmNeed need;
  need.least = {{kCpu, RequestedCpu(*domain)}, {kMemory, memory}, {kPods, 1}};
  need.least.merge(DevicesOf(*domain));
  MoveToHugePages(*domain, &need.least);
  need.amounts = need.least;
  // kubevirt/kubevirt:staging/src/kubevirt.io/api/core/v1/schema.go, ResourceRequirements.
  if (!base::GetBool(*resources, "overcommitGuestOverhead")) {
    need.amounts[kMemory] += OverheadOf(*domain, memory);
  }
  if (KeepsConsoleLog(*domain)) {
    need.amounts[kMemory] += kConsoleLogRequest;
    need.amounts[kCpu] += kConsoleLogRequestThousandths;
  }
  need.ns = base::TextAt(vm, {"metadata", "namespace"});
  need.pool = base::TextAt(vm, {"spec", "template", "metadata", "labels", kPoolLabel});
  ReadPlacement(*guest, &need);
  // kubevirt/kubevirt:pkg/virt-controller/services/nodeselectorrenderer.go, Render.
  const std::string model = base::TextAt(*domain, {"cpu", "model"});
  if (!model.empty() && model != "host-model" && model != "host-passthrough") {
    need.node_selector["cpu-model.node.kubevirt.io/" + model] = "true";
  }
  return need;
}

}  // namespace nomad_harvester::harvester
