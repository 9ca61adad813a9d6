// SPDX-License-Identifier: Apache-2.0
#include "pod_requests.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/parse.h"

namespace nomad_harvester::simulator {
namespace {

constexpr std::int64_t kMi = std::int64_t{1} << 20;

// At most what can be added up.
std::int64_t Quantity(const std::string& resource, const std::string& text) {
  constexpr std::int64_t kMost = std::int64_t{1} << 50;
  const bool in_thousandths = resource == "cpu";
  if (in_thousandths && !text.empty() && text.back() == 'm') {
    return std::min(base::ParseInt(text.substr(0, text.size() - 1)).value_or(0), kMost);
  }
  return std::min(base::ParseQuantity(text).value_or(0), kMost) * (in_thousandths ? 1000 : 1);
}

std::string TextOf(const std::string& resource, std::int64_t amount) {
  if (resource != "cpu") return base::FormatBinaryQuantity(amount);
  return amount % 1000 == 0 ? std::to_string(amount / 1000) : std::to_string(amount) + "m";
}

// Of a list of resources, which may be missing.
Requests ReadRequests(const Json* list) {
  Requests requests;
  if (list == nullptr || !list->is_object()) return requests;
  for (const auto& [resource, amount] : list->items()) {
    if (amount.is_string()) requests[resource] = Quantity(resource, amount.get<std::string>());
  }
  return requests;
}

Json ToJson(const Requests& requests) {
  Json list = Json::object();
  for (const auto& [resource, amount] : requests) list[resource] = TextOf(resource, amount);
  return list;
}

// The devices that are passed through.
Requests DevicesOf(const Json& domain) {
  Requests devices;
  for (const char* const kind : {"gpus", "hostDevices"}) {
    for (const Json& device : ElementsAt(domain, {"devices", kind})) {
      ++devices[base::GetString(device, "deviceName")];
    }
  }
  return devices;
}

bool IsPinned(const Json& domain) {
  const Json* const cpu = base::FindMember(domain, "cpu");
  return cpu != nullptr && base::GetBool(*cpu, "dedicatedCpuPlacement");
}

std::int64_t CpusOf(const Json& domain) {
  const Json* const cpu = base::FindMember(domain, "cpu");
  std::int64_t cpus = 1;
  if (cpu == nullptr) return cpus;
  for (const char* const count : {"cores", "sockets", "threads"}) {
    cpus *= std::max<std::int64_t>(1, base::GetInt(*cpu, count));
  }
  return cpus;
}

// GetMemoryOverhead, times Harvester's default of additional-guest-memory-overhead-ratio, 1.5; in
// thousands of bytes where KubeVirt counts so.
std::int64_t OverheadOf(const Json& domain, std::int64_t memory) {
  const auto thousands = [](std::int64_t bytes) { return (bytes + 999) / 1000; };
  std::int64_t overhead = thousands(memory) * 1000 / 512 + 260 * kMi + 8 * kMi * CpusOf(domain);
  if (!DevicesOf(domain).empty()) overhead += 1024 * kMi;
  if (IsPinned(domain)) overhead += 100 * kMi;
  if (base::FindPath(domain, {"devices", "tpm"}) != nullptr) overhead += 53 * kMi;
  return overhead + thousands(overhead) / 2 * 1000;
}

void Add(const Requests& more, Requests& requests) {
  for (const auto& [resource, amount] : more) requests[resource] += amount;
}

void Raise(const Requests& least, Requests& requests) {
  for (const auto& [resource, amount] : least) {
    requests[resource] = std::max(requests[resource], amount);
  }
}

}  // namespace

const Json& ElementsAt(const Json& object, std::initializer_list<std::string_view> path) {
  static const Json kNone = Json::array();
  const Json* const list = base::FindPath(object, path);
  return list != nullptr && list->is_array() ? *list : kNone;
}

void SetRequests(Json& vm) {
  const Requests limits = ReadRequests(
      base::FindPath(vm, {"spec", "template", "spec", "domain", "resources", "limits"}));
  if (limits.empty()) return;
  Json& domain = vm["spec"]["template"]["spec"]["domain"];
  Json& resources = domain["resources"];
  Requests requests = ReadRequests(base::FindMember(resources, "requests"));
  const bool is_pinned = IsPinned(domain);
  if (const auto cpu = limits.find("cpu"); cpu != limits.end()) {
    requests["cpu"] = is_pinned ? cpu->second : cpu->second * 100 / 1000;
  }
  if (const auto memory = limits.find("memory"); memory != limits.end()) {
    const bool is_whole = is_pinned || !DevicesOf(domain).empty();
    requests["memory"] = is_whole ? memory->second : memory->second / 3 * 2 / kMi * kMi;
  }
  resources["requests"] = ToJson(requests);
}

Json LauncherPod(const Json& instance) {
  const Json* const found = base::FindPath(instance, {"spec", "domain"});
  const Json domain = found == nullptr ? Json::object() : *found;
  const Requests limits = ReadRequests(base::FindPath(domain, {"resources", "limits"}));
  Requests compute = ReadRequests(base::FindPath(domain, {"resources", "requests"}));
  compute.try_emplace("cpu", CpusOf(domain) * 100);  // cpuAllocationRatio is 10
  if (const auto limit = limits.find("memory"); limit != limits.end()) {
    compute.try_emplace("memory", limit->second);
  }
  std::int64_t& memory = compute["memory"];
  memory += OverheadOf(domain, memory);
  Add(DevicesOf(domain), compute);
  const Json console = {{"name", "guest-console-log"},
                        {"restartPolicy", "Always"},
                        {"resources", {{"requests", {{"cpu", "5m"}, {"memory", "35M"}}}}}};
  const Json main = {{"name", "compute"}, {"resources", {{"requests", ToJson(compute)}}}};
  Json metadata = {{"name", "virt-launcher-" + NameOf(instance)},
                   {"namespace", NamespaceOf(instance)},
                   {"uid", UidOf(instance)},
                   {"resourceVersion", MetaString(instance, "resourceVersion")},
                   {"creationTimestamp", MetaString(instance, "creationTimestamp")},
                   {"labels", instance["metadata"].value("labels", Json::object())},
                   {"annotations", {{"kubevirt.io/domain", NameOf(instance)}}}};
  metadata["labels"]["kubevirt.io"] = "virt-launcher";
  const std::string phase = base::TextAt(instance, {"status", "phase"});
  const bool has_begun = phase == "Running" || phase == "Succeeded" || phase == "Failed";
  const Json scheduled = {{"type", "PodScheduled"}, {"status", "True"}};
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata", std::move(metadata)},
          {"spec",
           {{"nodeName", base::TextAt(instance, {"status", "nodeName"})},
            {"initContainers", Json::array({console})},
            {"containers", Json::array({main})}}},
          {"status",
           {{"phase", has_begun ? phase : "Pending"}, {"conditions", Json::array({scheduled})}}}};
}

Requests RequestsOf(const Json& pod) {
  Requests all;
  for (const Json& container : ElementsAt(pod, {"spec", "containers"})) {
    Add(ReadRequests(base::FindPath(container, {"resources", "requests"})), all);
  }
  Requests sidecars;
  Requests peak;
  for (const Json& container : ElementsAt(pod, {"spec", "initContainers"})) {
    Requests one = ReadRequests(base::FindPath(container, {"resources", "requests"}));
    if (base::GetString(container, "restartPolicy") == "Always") {
      Add(one, sidecars);
    } else {
      Add(sidecars, one);
      Raise(one, peak);
    }
  }
  Add(sidecars, all);
  Raise(peak, all);
  Add(ReadRequests(base::FindPath(pod, {"spec", "overhead"})), all);
  all.erase("ephemeral-storage");
  all["pods"] = 1;
  return all;
}

Requests AllocatableOf(const Json& host) {
  constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();
  Requests all = ReadRequests(base::FindPath(host, {"status", "allocatable"}));
  for (const char* const resource : {"cpu", "memory", "pods"}) {
    all.try_emplace(resource, kUnlimited);
  }
  return all;
}

}  // namespace nomad_harvester::simulator
