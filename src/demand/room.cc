// SPDX-License-Identifier: Apache-2.0
#include "room.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_split.h"

namespace nomad_harvester::demand {
namespace {

using Devices = std::map<std::string, std::int64_t>;

// Takes what one allocation needs, each need from one kind of device; false if it cannot.
bool TakeDevices(const Group& group, Devices& free) {
  return std::all_of(group.devices.begin(), group.devices.end(), [&](const DeviceNeed& need) {
    const auto found = std::find_if(free.begin(), free.end(), [&](const auto& entry) {
      return entry.second >= need.count && MatchesDevice(need.name, entry.first);
    });
    if (found == free.end()) return false;
    found->second -= need.count;
    return true;
  });
}

void Limit(std::int64_t free, std::int64_t need, std::int64_t& count) {
  if (need > 0) count = std::min(count, free < need ? 0 : free / need);
}

std::string Lack(std::int64_t need, std::int64_t free, const char* unit) {
  if (need <= free) return "";
  return "needs " + std::to_string(need) + " " + unit + ", there are " +
         std::to_string(std::max<std::int64_t>(0, free));
}

}  // namespace

bool MatchesDevice(std::string_view asked, std::string_view device) {
  const std::vector<std::string> want = absl::StrSplit(std::string(asked), absl::MaxSplits('/', 2));
  const std::vector<std::string> have =
      absl::StrSplit(std::string(device), absl::MaxSplits('/', 2));
  if (have.size() < 3) return false;
  const auto matches = [](const std::string& a, const std::string& b) {
    return a.empty() || a == b;
  };
  if (want.size() == 1) return matches(want[0], have[1]);
  return matches(want[0], have[0]) && matches(want[1], have[1]) &&
         (want.size() < 3 || matches(want[2], have[2]));
}

void GrowToHold(const Placed& placed, std::int64_t cpu_per_core, Resources& need) {
  for (const auto each : kEachAmount) {
    const std::int64_t of_cores = each == &Resources::cpu ? placed.uses.cores * cpu_per_core : 0;
    need.*each = std::max(need.*each, placed.uses.*each - of_cores);
  }
}

// Of an allocation, constraints are not known, nor which of its ports are static.
void GrowToHold(const Placed& placed, std::int64_t cpu_per_core, Group& group) {
  group.ns = placed.ns;
  group.job = placed.job;
  group.name = placed.group;
  group.job_type = placed.job_type;
  group.datacenters = {"*"};
  GrowToHold(placed, cpu_per_core, group.need);
  for (const auto& [device, count] : placed.uses.devices) {
    const auto found =
        std::find_if(group.devices.begin(), group.devices.end(),
                     [&name = device](const auto& need) { return need.name == name; });
    if (found != group.devices.end()) {
      found->count = std::max(found->count, count);
    } else {
      group.devices.push_back({.name = device, .count = count});
    }
  }
}

void Room::Occupy(const Placed& placed) {
  for (const auto each : kEachAmount) free_.*each -= placed.uses.*each;
  for (const auto& [device, count] : placed.uses.devices) free_.devices[device] -= count;
  ports_.insert(placed.ports.begin(), placed.ports.end());
}

double Room::FreeShareOf(const Resources& capacity) const {
  return std::min(ShareOf(free_.cpu, capacity.cpu), ShareOf(free_.memory_mb, capacity.memory_mb));
}

std::int64_t Room::HowMany(const Group& group, std::int64_t wanted) const {
  std::int64_t count = wanted;
  for (const auto each : kEachAmount) Limit(free_.*each, NeedOf(group, each), count);
  if (count <= 0) return 0;
  if (!group.static_ports.empty()) {
    count = 1;
    for (const std::uint16_t port : group.static_ports) {
      if (ports_.contains(port)) return 0;
    }
  }
  if (group.devices.empty()) return count;
  Devices free = free_.devices;
  std::int64_t fit = 0;
  while (fit < count && TakeDevices(group, free)) ++fit;
  return fit;
}

void Room::Take(const Group& group, std::int64_t count) {
  for (const auto each : kEachAmount) free_.*each -= NeedOf(group, each) * count;
  for (std::int64_t i = 0; i < count && !group.devices.empty(); ++i) {
    TakeDevices(group, free_.devices);
  }
  ports_.insert(group.static_ports.begin(), group.static_ports.end());
}

std::string Room::WhyNone(const Group& group) const {
  for (const std::string& lack : {Lack(group.need.memory_mb, free_.memory_mb, "MiB of memory"),
                                  Lack(NeedOf(group, &Resources::cpu), free_.cpu, "MHz of CPU"),
                                  Lack(group.need.disk_mb, free_.disk_mb, "MiB of disk"),
                                  Lack(group.need.cores, free_.cores, "cores")}) {
    if (!lack.empty()) return lack;
  }
  for (const std::uint16_t port : group.static_ports) {
    if (ports_.contains(port)) return "needs port " + std::to_string(port) + ", which is taken";
  }
  Devices free = free_.devices;
  if (TakeDevices(group, free)) return "";
  std::string text = "needs";
  for (const DeviceNeed& need : group.devices) {
    text += (text == "needs" ? " " : " and ") + std::to_string(need.count) + " " + need.name;
  }
  return text + ", and there are not as many devices";
}

}  // namespace nomad_harvester::demand
