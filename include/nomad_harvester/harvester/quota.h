// SPDX-License-Identifier: Apache-2.0
// How many VMs the ResourceQuotas of a namespace leave room for (rule C2).
#ifndef NOMAD_HARVESTER_HARVESTER_QUOTA_H_
#define NOMAD_HARVESTER_HARVESTER_QUOTA_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "nomad_harvester/harvester/vm_spec.h"

#include "nlohmann/json_fwd.hpp"

namespace nomad_harvester::harvester {

// What a quota counts of one resource, in thousandths: processors are given in them.
struct QuotaLine {
  std::string hard_text;  // as the object says it
  std::string used_text;
  std::int64_t hard = 0;
  std::int64_t used = 0;
};
struct ResourceQuota {
  std::string name;
  // By resource. Quantities that cannot be read, or that are larger than this can hold, are left
  // out; so is what the quota's controller has not counted yet.
  std::map<std::string, QuotaLine> lines;
};
// Empty lines for a quota with scopes: whether a VM falls under them is not ours to judge.
ResourceQuota ParseResourceQuota(const nlohmann::json& object);

struct QuotaRoom {
  std::int64_t vms = 0;  // so many more fit, 0 or more
  std::string limit;     // what stands against one more, with quota, resource, hard and used
};
// What limits VMs of this VM spec most; nothing if no quota speaks of what they take. It is a
// bound from above: a VM's pod takes some 250 Mi more memory than its guest, which depends on
// KubeVirt's release. What takes too much after all is halted by Harvester and removed (rule C3).
//
// Counted: limits.cpu, limits.memory, pods of its pod; requests.storage and persistentvolumeclaims
// of its root disk, also by storage class; secrets; and counts of objects
// (kubernetes/kubernetes:pkg/quota/v1/evaluator/core).
std::optional<QuotaRoom> FindQuotaRoom(const std::vector<ResourceQuota>& quotas,
                                       const VmSpec& vm_spec);

}  // namespace nomad_harvester::harvester

#endif  // NOMAD_HARVESTER_HARVESTER_QUOTA_H_
