// SPDX-License-Identifier: Apache-2.0
// Finds the nodes that have a VM's name.
#ifndef NOMAD_HARVESTER_SRC_NODEPOOL_NAME_INDEX_H_
#define NOMAD_HARVESTER_SRC_NODEPOOL_NAME_INDEX_H_

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "nomad_harvester/nodepool/link.h"

namespace nomad_harvester::nodepool {

// Indexes all nodes by the short, lower-case value of an attribute, with one table for each
// attribute that some VM uses as node_attribute. Keeps references to the nodes.
class NameIndex {
 public:
  explicit NameIndex(const std::vector<nomad::Node>& nodes) : nodes_(nodes) {}

  // The nodes that have the VM's name, in the order of the list.
  std::vector<std::size_t> NodesNamed(const VmIdentityHints& vm);

 private:
  using Table = std::map<std::string, std::vector<std::size_t>>;
  const Table& TableOf(const std::string& attribute);

  const std::vector<nomad::Node>& nodes_;
  std::map<std::string, Table> tables_;
};

}  // namespace nomad_harvester::nodepool

#endif  // NOMAD_HARVESTER_SRC_NODEPOOL_NAME_INDEX_H_
