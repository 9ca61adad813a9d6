// SPDX-License-Identifier: Apache-2.0
// Estimates how many more VMs the ResourceQuotas of a namespace allow (rule C2).
#ifndef NOMAD_HARVESTER_HARVESTER_QUOTA_H_
#define NOMAD_HARVESTER_HARVESTER_QUOTA_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "nomad_harvester/harvester/host_room.h"
#include "nomad_harvester/harvester/vm_spec.h"

namespace nomad_harvester::harvester {

// One resource of a quota, in thousandths, because CPUs are given in thousandths.
struct QuotaLine {
  std::string hard_text;  // as written in the object
  std::string used_text;
  std::int64_t hard = 0;
  std::int64_t used = 0;
};
// A quota with scopes has no lines, because the plugin does not evaluate scopes.
struct ResourceQuota {
  std::string name;
  // By resource. Omits quantities that cannot be parsed or overflow, and resources that the quota
  // controller has not counted yet.
  std::map<std::string, QuotaLine> lines;
};

struct QuotaRoom {
  std::int64_t vms = 0;  // how many more VMs fit, at least 0
  std::string limit;     // what prevents one more: quota, resource, hard, used
};
// Returns the tightest limit for VMs with this spec; nullopt if no quota limits a resource that
// they use. An estimate, because a pod's overhead depends on KubeVirt's release and on Harvester's
// settings. If a VM exceeds the quota after all, Harvester halts it and the plugin removes it (rule
// C3).
//
// Counted: limits.cpu, limits.memory, pods of its pod, and its requests of CPU and memory, which
// only `need` has; requests.storage and persistentvolumeclaims of its disks, also by storage class
// where the policy or the image names one; secrets; and counts of objects
// (kubernetes/kubernetes:pkg/quota/v1/evaluator/core).
std::optional<QuotaRoom> FindQuotaRoom(const std::vector<ResourceQuota>& quotas,
                                       const VmSpec& vm_spec, const std::optional<VmNeed>& need);

}  // namespace nomad_harvester::harvester

#endif  // NOMAD_HARVESTER_HARVESTER_QUOTA_H_
