// SPDX-License-Identifier: Apache-2.0
#ifndef NOMAD_HARVESTER_TEST_NODEPOOL_LINKS_H_
#define NOMAD_HARVESTER_TEST_NODEPOOL_LINKS_H_

#include <vector>

#include "nomad_harvester/nodepool/link.h"

namespace nomad_harvester::nodepool {

inline Links LinkNodes(const std::vector<VmIdentityHints>& vms,
                       const std::vector<nomad::Node>& nodes) {
  return Linker(vms, nodes).LinkAll(nodes);
}

}  // namespace nomad_harvester::nodepool

#endif  // NOMAD_HARVESTER_TEST_NODEPOOL_LINKS_H_
