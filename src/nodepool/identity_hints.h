// SPDX-License-Identifier: Apache-2.0
// The identity hints of rule C6: properties other than the name that show which VM a node is.
#ifndef NOMAD_HARVESTER_SRC_NODEPOOL_IDENTITY_HINTS_H_
#define NOMAD_HARVESTER_SRC_NODEPOOL_IDENTITY_HINTS_H_

#include <cstddef>
#include <map>
#include <string>
#include <utility>
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

  // The hints of `node`, which stands at `index` of the list, as it was or as it was read since. A
  // value that matches no VM or several, or that another node has, too, gives none.
  std::vector<IdentityHint> Of(std::size_t index, const nomad::Node& node) const;

 private:
  enum class Kind { kMetaUuid, kAddress, kHostId };
  using Value = std::pair<Kind, std::string>;
  struct Owners {
    std::size_t vm = 0;
    bool several_vms = false;
    std::vector<std::size_t> nodes{};
  };
  static std::vector<Value> ValuesOf(const nomad::Node& node);
  static std::vector<Value> ValuesOf(const VmIdentityHints& vm);
  static std::string Describe(const Value& value);

  std::map<Value, Owners> owners_;  // of the VMs' values only
};

}  // namespace nomad_harvester::nodepool

#endif  // NOMAD_HARVESTER_SRC_NODEPOOL_IDENTITY_HINTS_H_
