// SPDX-License-Identifier: Apache-2.0
// What is left of a VM that is gone, in a simulated Nomad.
#ifndef NOMAD_HARVESTER_TEST_SUPPORT_NODE_TO_PURGE_H_
#define NOMAD_HARVESTER_TEST_SUPPORT_NODE_TO_PURGE_H_

#include <chrono>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "nomad_harvester/simulator/cluster.h"

namespace nomad_harvester::support {

// A node that an earlier process drained for a VM of its name, which is gone. The pool, as in
// "nomad/web", has to purge it once it is down. `more` is added to the drain's meta. Returns its
// ID.
inline std::string AddNodeToPurge(simulator::Cluster& cluster, const simulator::NodeSpec& node,
                                  const std::string& pool,
                                  const std::map<std::string, std::string>& more = {}) {
  std::map<std::string, std::string> meta = {{"drained_by", "nomad-autoscaler"},
                                             {"action", "a-of-before"},
                                             {"vm", node.name},
                                             {"vm_uid", "uid-of-" + node.name},
                                             {"pool", pool},
                                             {"purge", "true"},
                                             {"was", "eligible"}};
  meta.insert(more.begin(), more.end());
  std::string id = cluster.AddForeignNode(node);
  EXPECT_TRUE(cluster.OperatorDrain(id, std::chrono::minutes(1), meta));
  return id;
}

}  // namespace nomad_harvester::support

#endif  // NOMAD_HARVESTER_TEST_SUPPORT_NODE_TO_PURGE_H_
