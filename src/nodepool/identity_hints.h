// SPDX-License-Identifier: Apache-2.0
// The identity hints of rule C6: properties other than the name that show which VM a node is.
#ifndef NOMAD_HARVESTER_SRC_NODEPOOL_IDENTITY_HINTS_H_
#define NOMAD_HARVESTER_SRC_NODEPOOL_IDENTITY_HINTS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "nomad_harvester/nodepool/link.h"

namespace nomad_harvester::nodepool {

// One property that identifies a node as a certain VM.
struct IdentityHint {
  std::size_t vm = 0;
  std::string what;  // "meta.harvester_vm_uuid", "address 10.0.0.7", "unique.host_id"
};

class IdentityHints {
 public:
  IdentityHints(const std::vector<VmIdentityHints>& vms, const std::vector<nomad::Node>& nodes);

  // The hints of a node. A value that matches no VM or several, or that several nodes share, gives
  // none.
  const std::vector<IdentityHint>& Of(std::size_t node) const { return hints_[node]; }
  bool Identifies(std::size_t node, std::size_t vm) const;
  // The first hint that the node is a VM other than `vm`; null if there is none.
  const IdentityHint* Contradiction(std::size_t node, std::size_t vm) const;

 private:
  std::vector<std::vector<IdentityHint>> hints_;
};

}  // namespace nomad_harvester::nodepool

#endif  // NOMAD_HARVESTER_SRC_NODEPOOL_IDENTITY_HINTS_H_
