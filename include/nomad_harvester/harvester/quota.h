// SPDX-License-Identifier: Apache-2.0
// How many more VMs the ResourceQuotas of a namespace allow (rule C2).
#ifndef NOMAD_HARVESTER_HARVESTER_QUOTA_H_
#define NOMAD_HARVESTER_HARVESTER_QUOTA_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

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
  // By resource. Quantities that cannot be parsed or that overflow are left out, and so are
  // resources that the quota controller has not counted yet.
  std::map<std::string, QuotaLine> lines;
};

struct QuotaRoom {
  std::int64_t vms = 0;  // how many more VMs fit, 0 or more
  std::string limit;     // what prevents one more: quota, resource, hard, used
};
// The tightest limit for VMs of this VM spec; nullopt if no quota limits a resource that they use.
// This is an estimate, because the overhead of a VM's pod depends on KubeVirt's release and on
// Harvester's settings. If a VM exceeds the quota nevertheless, Harvester halts it and the plugin
// removes it (rule C3).
//
// Counted: limits.cpu, limits.memory, pods of its pod; requests.storage and persistentvolumeclaims
// of its disks, also by storage class where the policy or the image names one; secrets; and counts
// of objects (kubernetes/kubernetes:pkg/quota/v1/evaluator/core).
std::optional<QuotaRoom> FindQuotaRoom(const std::vector<ResourceQuota>& quotas,
                                       const VmSpec& vm_spec);

}  // namespace nomad_harvester::harvester

#endif  // NOMAD_HARVESTER_HARVESTER_QUOTA_H_
