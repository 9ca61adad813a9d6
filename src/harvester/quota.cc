// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/harvester/quota.h"

#include <algorithm>
#include <limits>

#include "nomad_harvester/base/text.h"
#include "nomad_harvester/kube/observed.h"

#include "launcher.h"
#include "object_fields.h"

namespace nomad_harvester::harvester {
namespace {

constexpr std::int64_t kThousand = 1000;

std::int64_t InThousandths(std::int64_t whole) {
  return std::min(whole, std::numeric_limits<std::int64_t>::max() / kThousand) * kThousand;
}

using Needs = std::map<std::string, std::int64_t>;

// A disk without a storage class gets Harvester's default class, which is unknown here.
void AddDisk(const policy::DataDisk& disk, Needs* needs) {
  AddAmounts({{"requests.storage", InThousandths(disk.bytes)},
              {"persistentvolumeclaims", kThousand},
              {"count/persistentvolumeclaims", kThousand}},
             needs);
  if (disk.storage_class.empty()) return;
  const std::string by_class = disk.storage_class + ".storageclass.storage.k8s.io/";
  AddAmounts({{by_class + "requests.storage", InThousandths(disk.bytes)},
              {by_class + "persistentvolumeclaims", kThousand}},
             needs);
}

// A quota counts the pod, whose limits exceed the guest's. The overhead depends on the memory that
// the guest requests: by Harvester's default, two thirds of its limit, in whole MiB.
std::int64_t PodMemory(const VmSpec& vm_spec) {
  const bool has_devices = !vm_spec.gpus.empty() || !vm_spec.host_devices.empty();
  return vm_spec.memory_bytes + kConsoleLogLimit +
         LauncherOverhead(vm_spec.memory_bytes / 3 * 2 / kMi * kMi, vm_spec.cpu_cores,
                          has_devices ? kOverheadOfVfio : 0);
}

// The resources that one VM needs, in thousandths.
Needs NeedsOf(const VmSpec& vm_spec, const std::optional<VmNeed>& need) {
  Needs needs = {{"limits.cpu", vm_spec.cpu_cores * kThousand + kConsoleLogLimitThousandths},
                 {"limits.memory", InThousandths(PodMemory(vm_spec))}};
  for (const char* const one :
       {"pods", "count/pods", "secrets", "count/secrets", "count/virtualmachines.kubevirt.io",
        "count/virtualmachineinstances.kubevirt.io"}) {
    needs[one] = kThousand;
  }
  AddDisk({.bytes = vm_spec.disk_bytes, .storage_class = vm_spec.image.storage_class}, &needs);
  for (const policy::DataDisk& disk : vm_spec.data_disks) AddDisk(disk, &needs);
  for (std::size_t i = 1; i < vm_spec.base.disks.size(); ++i) {
    const VmBase::Disk& disk = vm_spec.base.disks[i];
    if (disk.claim == nullptr) continue;
    AddDisk({.bytes = disk.bytes, .storage_class = disk.storage_class}, &needs);
  }
  if (!need.has_value()) return needs;
  for (const auto& [resource, amount] : need->amounts) {
    if (resource != kCpu && resource != kMemory) continue;
    needs[resource] = resource == kCpu ? amount : InThousandths(amount);
    needs["requests." + resource] = needs[resource];
  }
  return needs;
}

void AddLines(ResourceQuotaRecord& record, const base::JsonEvent& /*end*/) {
  if (record.scoped) return;
  for (const auto& [resource, text] : record.hard) {
    QuotaLine line{.hard_text = text, .used_text = base::ValueOf(record.used, resource)};
    const std::optional<std::int64_t> most = Thousandths(line.hard_text);
    const std::optional<std::int64_t> taken = Thousandths(line.used_text);
    if (!most.has_value() || !taken.has_value()) continue;
    line.hard = *most;
    line.used = *taken;
    record.lines.emplace(resource, std::move(line));
  }
}

}  // namespace

const base::JsonFields<ResourceQuotaRecord>& ResourceQuotaFields() {
  using Record = ResourceQuotaRecord;
  using base::JsonEvent;
  static const auto* const kFields = new base::JsonFields<Record>({
      {"metadata.name", &base::SetText<&Record::name, Record>},
      {"spec.scopes",
       [](Record& r, const JsonEvent& e) { r.scoped |= e.kind == JsonEvent::Kind::kText; }},
      {"spec.scopeSelector.*", [](Record& r, const JsonEvent&) { r.scoped = true; }},
      {"status.hard.*", &base::PutText<&Record::hard>},
      {"status.used.*", &base::PutText<&Record::used>},
      {"", &AddLines},
  });
  return *kFields;
}

std::optional<QuotaRoom> FindQuotaRoom(const std::vector<ResourceQuota>& quotas,
                                       const VmSpec& vm_spec, const std::optional<VmNeed>& need) {
  std::optional<QuotaRoom> least;
  for (const auto& [resource, amount] : NeedsOf(vm_spec, need)) {
    if (amount <= 0) continue;
    for (const ResourceQuota& quota : quotas) {
      const auto line = quota.lines.find(resource);
      if (line == quota.lines.end()) continue;
      const std::int64_t room =
          std::max<std::int64_t>(0, line->second.hard - line->second.used) / amount;
      if (least.has_value() && least->vms <= room) continue;
      least = QuotaRoom{.vms = room,
                        .limit = "ResourceQuota " + quota.name + ": " + line->second.used_text +
                                 " of " + line->second.hard_text + " " + resource + " are used"};
    }
  }
  return least;
}

}  // namespace nomad_harvester::harvester
