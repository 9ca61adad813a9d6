// The second witnesses of rule C6: what, besides its name, tells which VM a node is.
#ifndef NOMAD_HARVESTER_SRC_NODEPOOL_WITNESSES_H_
#define NOMAD_HARVESTER_SRC_NODEPOOL_WITNESSES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "nomad_harvester/nodepool/link.h"

namespace nomad_harvester::nodepool {

// "This node is that VM."
struct Testimony {
  std::size_t vm = 0;
  std::string what;  // "meta.harvester_vm_uuid", "address 10.0.0.7", "unique.host_id"
};

class Witnesses {
 public:
  Witnesses(const std::vector<VmWitness>& vms, const std::vector<nomad::Node>& nodes);

  // What is said of a node; nothing by a value that matches no VM or several, or that several
  // nodes share.
  const std::vector<Testimony>& Of(std::size_t node) const { return testimonies_[node]; }
  bool Identifies(std::size_t node, std::size_t vm) const;
  // The first testimony that the node is a VM other than `vm`; null: none.
  const Testimony* Contradiction(std::size_t node, std::size_t vm) const;

 private:
  std::vector<std::vector<Testimony>> testimonies_;
};

}  // namespace nomad_harvester::nodepool

#endif  // NOMAD_HARVESTER_SRC_NODEPOOL_WITNESSES_H_
