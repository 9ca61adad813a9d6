// SPDX-License-Identifier: Apache-2.0
// Finds the nodes that have a VM's name.
#ifndef NOMAD_HARVESTER_SRC_NODEPOOL_NAME_INDEX_H_
#define NOMAD_HARVESTER_SRC_NODEPOOL_NAME_INDEX_H_

#include <cstddef>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "nomad_harvester/nodepool/link.h"

namespace nomad_harvester::nodepool {

// VMs and nodes by the short, lower-case value of an attribute, with one table for each attribute
// that some VM uses as node_attribute. Only names of VMs are kept.
class NameIndex {
 public:
  NameIndex(const std::vector<VmIdentityHints>& vms, const std::vector<nomad::Node>& nodes);

  // The nodes that have the VM's name, in the order of the list.
  const std::vector<std::size_t>& NodesNamed(const VmIdentityHints& vm) const;
  // Whether the node has the VM's name.
  static bool Matches(const nomad::Node& node, const VmIdentityHints& vm);
  // Whether the node has the name of a VM other than `vm`, by whatever attribute.
  bool IsNamedAfterAnother(const nomad::Node& node, std::size_t vm) const;

 private:
  struct Named {
    std::vector<std::size_t> vms;
    std::vector<std::size_t> nodes;
  };
  using Table = std::unordered_map<std::string, Named>;

  std::map<std::string, Table> tables_;  // by attribute
};

}  // namespace nomad_harvester::nodepool

#endif  // NOMAD_HARVESTER_SRC_NODEPOOL_NAME_INDEX_H_
