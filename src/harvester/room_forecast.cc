// SPDX-License-Identifier: Apache-2.0
// Which of the wanted VMs fit on the hosts. The rules are those of Kubernetes' scheduler
// (kubernetes/kubernetes:pkg/scheduler/framework/plugins: nodeunschedulable, tainttoleration,
// nodeaffinity, noderesources, interpodaffinity).
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/base/text.h"
#include "nomad_harvester/harvester/host_room.h"

#include "absl/strings/str_join.h"
#include "object_fields.h"

namespace nomad_harvester::harvester {
namespace {

// What a host has for pods. A quantity that cannot be read limits nothing, as does one of CPU,
// memory or pods that is missing.
Amounts CapacityOf(const Host& host) {
  Amounts capacity;
  for (const auto& [resource, text] : host.allocatable) {
    const auto amount =
        resource == kCpu ? Thousandths(text) : base::ToOptional(base::ParseQuantity(text));
    if (amount.has_value()) capacity[resource] = std::max<std::int64_t>(0, *amount);
  }
  return capacity;
}

struct Shortage {
  std::string resource;
  std::int64_t free = 0;
  std::int64_t needed = 0;
};

std::optional<Shortage> ShortageOf(const Host& host, const Amounts& capacity, const Amounts& used,
                                   const Amounts& needed) {
  for (const auto& [resource, amount] : needed) {
    const auto has = capacity.find(resource);
    const bool is_limited =
        has != capacity.end() || (resource != kCpu && resource != kMemory && resource != kPods &&
                                  !host.allocatable.contains(resource));
    if (amount <= 0 || !is_limited) continue;
    const auto taken = used.find(resource);
    const std::int64_t all = has == capacity.end() ? 0 : has->second;
    const std::int64_t left =
        std::max<std::int64_t>(0, all - (taken == used.end() ? 0 : taken->second));
    if (amount > left) return Shortage{.resource = resource, .free = left, .needed = amount};
  }
  return std::nullopt;
}

// kubernetes/kubernetes:staging/src/k8s.io/api/core/v1/toleration.go, ToleratesTaint. A comparison
// of numbers counts as true.
bool Tolerates(const Toleration& toleration, const Taint& taint) {
  if (!toleration.effect.empty() && toleration.effect != taint.effect) return false;
  if (!toleration.key.empty() && toleration.key != taint.key) return false;
  const bool is_equal = toleration.op.empty() || toleration.op == "Equal";
  return !is_equal || toleration.value == taint.value;
}

// Taints that Kubernetes and Harvester set and remove: for a cordon, a host that is not ready, one
// that is in maintenance
// (kubernetes/kubernetes:staging/src/k8s.io/api/core/v1/well_known_taints.go;
// harvester/harvester:pkg/controller/master/node/node_down_controller.go).
bool Passes(const Taint& taint) {
  return taint.key.starts_with("node.kubernetes.io/") || taint.key == "kubevirt.io/drain";
}

bool Tolerates(const VmNeed& need, const Taint& taint) {
  return std::any_of(need.tolerations.begin(), need.tolerations.end(),
                     [&](const Toleration& toleration) { return Tolerates(toleration, taint); });
}

// The first taint that keeps the VM away; null: none.
const Taint* RepellingTaint(const Host& host, const VmNeed& need, bool lasting_only) {
  for (const Taint& taint : host.taints) {
    if (taint.effect != "NoSchedule" && taint.effect != "NoExecute") continue;
    if (lasting_only && Passes(taint)) continue;
    if (!Tolerates(need, taint)) return &taint;
  }
  return nullptr;
}

// KubeVirt's label says false while its own agent on the host does not answer
// (kubevirt/kubevirt:staging/src/kubevirt.io/api/core/v1/types.go, NodeSchedulable).
bool IsReady(const Host& host) {
  return host.ready && base::ValueOf(host.labels, "kubevirt.io/schedulable") != "false";
}

// kubernetes/kubernetes:staging/src/k8s.io/apimachinery/pkg/labels/selector.go, Matches. An
// operator or a field that is not known counts as met.
bool Meets(const Host& host, const HostExpression& expression) {
  const auto is_listed = [&](const std::string& value) {
    return std::find(expression.values.begin(), expression.values.end(), value) !=
           expression.values.end();
  };
  if (expression.is_field) {
    if (expression.key != "metadata.name") return true;
    return expression.op == "NotIn" ? !is_listed(host.name) : is_listed(host.name);
  }
  const auto label = host.labels.find(expression.key);
  const bool has_label = label != host.labels.end();
  if (expression.op == "In") return has_label && is_listed(label->second);
  if (expression.op == "NotIn") return !has_label || !is_listed(label->second);
  if (expression.op == "Exists") return has_label;
  if (expression.op == "DoesNotExist") return !has_label;
  if (expression.op != "Gt" && expression.op != "Lt") return true;
  if (!has_label || expression.values.empty()) return false;
  const auto is = base::ParseInt(label->second);
  const auto bound = base::ParseInt(expression.values.front());
  if (!is.ok() || !bound.ok()) return false;
  return expression.op == "Gt" ? *is > *bound : *is < *bound;
}

bool HasLabelsFor(const Host& host, const VmNeed& need) {
  for (const auto& [key, value] : need.node_selector) {
    const auto label = host.labels.find(key);
    if (label == host.labels.end() || label->second != value) return false;
  }
  return need.terms.empty() ||
         std::any_of(need.terms.begin(), need.terms.end(), [&](const auto& term) {
           return std::all_of(term.begin(), term.end(), [&](const HostExpression& expression) {
             return Meets(host, expression);
           });
         });
}

// Why a host takes no VM, in the order in which the scheduler asks.
struct Objection {
  enum class Kind { kCordon, kNotReady, kTaint, kLabels, kZone, kShortage, kTaken };
  Kind kind = Kind::kCordon;
  std::string detail{};        // the taint, the zone
  Shortage shortage{};         // of kShortage
  bool of_all_it_has = false;  // the shortage is that of an empty host
};

std::string TextOf(const Taint& taint) {
  return taint.key + (taint.value.empty() ? "" : "=" + taint.value) + ":" + taint.effect;
}

// A host, while VMs are put on it.
struct Place {
  const Host* host = nullptr;
  Amounts capacity{};
  Amounts used{};
  std::int64_t vms_of_pool = 0;
};

std::optional<Objection> ObjectionForever(const Place& place, const VmNeed& need) {
  using enum Objection::Kind;
  if (const Taint* const taint = RepellingTaint(*place.host, need, true); taint != nullptr) {
    return Objection{.kind = kTaint, .detail = TextOf(*taint)};
  }
  if (!HasLabelsFor(*place.host, need)) return Objection{.kind = kLabels};
  auto shortage = ShortageOf(*place.host, place.capacity, {}, need.least);
  if (!shortage.has_value()) return std::nullopt;
  return Objection{.kind = kShortage, .shortage = *std::move(shortage), .of_all_it_has = true};
}

std::optional<Objection> ObjectionNow(const Place& place, const VmNeed& need,
                                      const std::string& zone) {
  using enum Objection::Kind;
  const Host& host = *place.host;
  const Taint cordon{.key = "node.kubernetes.io/unschedulable", .effect = "NoSchedule"};
  if (host.cordoned && !Tolerates(need, cordon)) return Objection{.kind = kCordon};
  if (!IsReady(host)) return Objection{.kind = kNotReady};
  if (const Taint* const taint = RepellingTaint(host, need, false); taint != nullptr) {
    return Objection{.kind = kTaint, .detail = TextOf(*taint)};
  }
  if (!HasLabelsFor(host, need)) return Objection{.kind = kLabels};
  if (!zone.empty() && host.zone != zone) return Objection{.kind = kZone, .detail = zone};
  auto shortage = ShortageOf(host, place.capacity, place.used, need.amounts);
  if (shortage.has_value()) {
    return Objection{.kind = kShortage, .shortage = *std::move(shortage)};
  }
  if (need.one_per_host && place.vms_of_pool > 0) return Objection{.kind = kTaken};
  return std::nullopt;
}

// Bytes in GiB, or MiB, with one digit. What is free is rounded down and what is needed up, so that
// the two always differ.
std::string Bytes(std::int64_t bytes, bool up) {
  const int shift = bytes < (std::int64_t{1} << 30) ? 20 : 30;
  const std::int64_t whole = bytes >> shift;
  const std::int64_t rest = (bytes - (whole << shift)) * 10;
  std::int64_t tenths = whole * 10 + (rest >> shift);
  if (up && ((rest >> shift) << shift) != rest) ++tenths;
  std::string text = std::to_string(tenths / 10);
  if (tenths % 10 != 0) text += "." + std::to_string(tenths % 10);
  return text + (shift == 20 ? " MiB" : " GiB");
}

std::string Number(const std::string& resource, std::int64_t amount, bool up) {
  if (resource == kMemory || resource.starts_with("hugepages-")) return Bytes(amount, up);
  if (resource != kCpu) return std::to_string(amount);
  std::string text = std::to_string(amount % 1000 + 1000).substr(1);
  text.erase(text.find_last_not_of('0') + 1);
  return std::to_string(amount / 1000) + (text.empty() ? "" : "." + text);
}

std::string Noun(const std::string& resource) {
  if (resource == kMemory || resource.starts_with("hugepages-")) return " of " + resource;
  return resource == kCpu ? " CPUs" : " " + resource;
}

// Hosts with the same objection.
struct Group {
  Objection objection;
  std::vector<std::string> hosts;
  std::int64_t least_free = 0;
  std::int64_t most_free = 0;
};

std::vector<Group> GroupsOf(const std::vector<Place>& places,
                            const std::vector<std::optional<Objection>>& objections) {
  std::vector<Group> groups;
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (!objections[i].has_value()) continue;
    const Objection& objection = *objections[i];
    const std::int64_t free = objection.shortage.free;
    const auto group = std::find_if(groups.begin(), groups.end(), [&](const Group& candidate) {
      return candidate.objection.kind == objection.kind &&
             candidate.objection.detail == objection.detail &&
             candidate.objection.shortage.resource == objection.shortage.resource;
    });
    if (group == groups.end()) {
      groups.push_back({objection, {places[i].host->name}, free, free});
      continue;
    }
    group->hosts.push_back(places[i].host->name);
    group->least_free = std::min(group->least_free, free);
    group->most_free = std::max(group->most_free, free);
  }
  return groups;
}

// "host h1", "hosts h1 and h2", "hosts h1, h2, h3 and 5 more".
std::string Names(std::vector<std::string> hosts) {
  constexpr std::size_t kMost = 3;
  if (hosts.size() == 1) return "host " + hosts.front();
  if (hosts.size() > kMost + 1) {
    const std::string more = std::to_string(hosts.size() - kMost) + " more";
    hosts.resize(kMost);
    hosts.push_back(more);
  }
  const std::string last = hosts.back();
  hosts.pop_back();
  return "hosts " + absl::StrJoin(hosts, ", ") + " and " + last;
}

std::string ShortageText(const Group& group) {
  const Shortage& shortage = group.objection.shortage;
  const bool several = group.hosts.size() > 1;
  const std::string least = Number(shortage.resource, group.least_free, false);
  const std::string most = Number(shortage.resource, group.most_free, false);
  return (several ? " have " : " has ") + std::string(least == most ? "" : "at most ") + most +
         Noun(shortage.resource) + (group.objection.of_all_it_has ? "" : " free") +
         (several ? " each" : "") + ", a VM needs " +
         Number(shortage.resource, shortage.needed, true);
}

std::string TextOf(const Group& group) {
  using enum Objection::Kind;
  const std::string names = Names(group.hosts);
  const bool several = group.hosts.size() > 1;
  const std::string is = several ? " are " : " is ";
  const std::string has = several ? " have " : " has ";
  switch (group.objection.kind) {
    case kCordon:
      return names + is + "cordoned";
    case kNotReady:
      return names + is + "not ready";
    case kTaint:
      return names + has + "the taint " + group.objection.detail +
             ", and a VM has no toleration for it";
    case kLabels:
      return names + (several ? " lack" : " lacks") + " labels that a VM requires";
    case kZone:
      return names + is + "not in zone " + group.objection.detail;
    case kShortage:
      return names + ShortageText(group);
    case kTaken:
      return names + has + "a VM of the pool" + (several ? " each" : "") +
             ", and host_spread allows one";
  }
  return names;
}

std::string WhyNone(const std::vector<Place>& places,
                    const std::vector<std::optional<Objection>>& objections) {
  if (places.empty()) return "Harvester has no hosts";
  std::vector<std::string> texts;
  for (const Group& group : GroupsOf(places, objections)) texts.push_back(TextOf(group));
  return absl::StrJoin(texts, "; ");
}

std::string KeptText(std::size_t waiting) {
  return ", besides what is kept for " + std::to_string(waiting) +
         (waiting == 1 ? " VM that waits for a host" : " VMs that wait for a host");
}

std::vector<Place> PlacesOf(const std::vector<HostRoom>& hosts, const VmNeed& need) {
  std::vector<Place> places;
  places.reserve(hosts.size());
  for (const HostRoom& room : hosts) {
    const auto vms = room.vms.find({need.ns, need.pool});
    places.push_back({.host = &room.host,
                      .capacity = CapacityOf(room.host),
                      .used = room.used,
                      .vms_of_pool = vms == room.vms.end() ? 0 : std::ssize(vms->second)});
  }
  return places;
}

// Puts one VM on a host. False: no host takes it, and `objections` says why.
bool PutOne(const VmNeed& need, const std::string& zone, std::vector<Place>* places,
            std::vector<std::optional<Objection>>* objections) {
  Place* best = nullptr;
  for (std::size_t i = 0; i < places->size(); ++i) {
    Place& place = (*places)[i];
    std::optional<Objection>& objection = (*objections)[i];
    objection = ObjectionNow(place, need, zone);
    if (objection.has_value()) continue;
    if (best == nullptr || place.vms_of_pool < best->vms_of_pool) best = &place;
  }
  if (best == nullptr) return false;
  AddAmounts(need.amounts, &best->used);
  ++best->vms_of_pool;
  return true;
}

}  // namespace

RoomForecast ForecastRoom(const std::vector<HostRoom>& hosts, const VmNeed& need,
                          const std::vector<std::string>& zones,
                          const std::vector<std::string>& waiting) {
  RoomForecast forecast;
  std::vector<Place> places = PlacesOf(hosts, need);
  std::vector<std::optional<Objection>> objections;
  objections.reserve(places.size());
  for (const Place& place : places) objections.push_back(ObjectionForever(place, need));
  forecast.never = !places.empty() && std::all_of(objections.begin(), objections.end(),
                                                  [](const auto& one) { return one.has_value(); });
  if (forecast.never) {
    forecast.fits.assign(zones.size(), false);
    forecast.why = WhyNone(places, objections);
    return forecast;
  }
  for (const std::string& zone : waiting) PutOne(need, zone, &places, &objections);
  forecast.fits.reserve(zones.size());
  for (const std::string& zone : zones) {
    forecast.fits.push_back(PutOne(need, zone, &places, &objections));
    if (forecast.fits.back() || !forecast.why.empty()) continue;
    forecast.why = WhyNone(places, objections);
    if (!waiting.empty()) forecast.why += KeptText(waiting.size());
  }
  return forecast;
}

std::size_t FitsIn(const RoomForecast& forecast) {
  return static_cast<std::size_t>(std::count(forecast.fits.begin(), forecast.fits.end(), true));
}

Room FindRoom(const std::vector<HostRoom>& hosts, const VmNeed& need,
              const std::vector<std::string>& waiting) {
  Room room;
  // Usually few fit, and the effort grows with the number that is asked for.
  for (const std::int64_t asked : {std::int64_t{10}, std::int64_t{100}, kMostRoom}) {
    room.forecast = ForecastRoom(
        hosts, need, std::vector<std::string>(static_cast<std::size_t>(asked)), waiting);
    room.vms = static_cast<std::int64_t>(FitsIn(room.forecast));
    if (room.vms < asked) break;
  }
  return room;
}

std::vector<std::string> ZonesOfWaiting(const std::vector<HostRoom>& hosts,
                                        const std::pair<std::string, std::string>& pool,
                                        const std::vector<const VirtualMachine*>& members) {
  std::set<std::string> placed;
  for (const HostRoom& host : hosts) {
    const auto vms = host.vms.find(pool);
    if (vms != host.vms.end()) placed.insert(vms->second.begin(), vms->second.end());
  }
  std::vector<std::string> zones;
  for (const VirtualMachine* vm : members) {
    if (vm->has_mark || IsTerminating(*vm) || placed.contains(vm->name)) continue;
    // KubeVirt calls a new VM Stopped until it has an instance.
    const bool runs = vm->run_strategy != kHalted && (!HasJoined(*vm) || !IsStopped(*vm));
    if (runs) zones.push_back(vm->zone);
  }
  return zones;
}

}  // namespace nomad_harvester::harvester
