// SPDX-License-Identifier: Apache-2.0
#include "observation/last_links.h"

#include <utility>
#include <vector>

namespace nomad_harvester::scaling {

struct LastLinks::Linked {
  std::weak_ptr<VmList::element_type> vms;
  std::weak_ptr<NodeList::element_type> nodes;
  std::string attribute;  // links the VMs that have no record of their own
  std::vector<nodepool::Link> links;
  nodepool::Linker linker;  // refers to strings of the nodes
  std::vector<bool> node_is_linked;
};

void LastLinks::Link(const VmList& vms, Look* look) {
  const std::string attribute =
      look->policy_nodes.has_value() ? look->policy_nodes->node_attribute : std::string();
  std::shared_ptr<const Linked> last;
  {
    base::MutexLock lock(mutex_);
    last = last_;
  }
  if (last != nullptr && vms != nullptr && look->node_list != nullptr && last->vms.lock() == vms &&
      last->nodes.lock() == look->node_list && last->attribute == attribute) {
    for (std::size_t i = 0; i < look->vms.size(); ++i) look->vms[i].link = last->links[i];
    look->linker = last->linker;
    look->node_is_linked = last->node_is_linked;
    return;
  }
  scaling::Link(look);
  std::vector<nodepool::Link> links;
  links.reserve(look->vms.size());
  for (const VmView& view : look->vms) links.push_back(view.link);
  auto linked = std::make_shared<const Linked>(Linked{
      vms, look->node_list, attribute, std::move(links), *look->linker, look->node_is_linked});
  base::MutexLock lock(mutex_);
  last_ = std::move(linked);
}

}  // namespace nomad_harvester::scaling
