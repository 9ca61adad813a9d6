// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/nodepool/link.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "identity_hints.h"
#include "name_index.h"

namespace nomad_harvester::nodepool {
namespace {

using Nodes = std::vector<std::size_t>;

// Ranks nodes of one name by status: higher means more likely the VM's present node.
int Rank(nomad::NodeStatus status) {
  switch (status) {
    case nomad::NodeStatus::kReady:
      return 2;
    case nomad::NodeStatus::kDown:
      return 0;
    default:
      return 1;
  }
}

// Links one VM after the other; nodes that several VMs would link to are handled afterwards.
class Linker {
 public:
  Linker(const std::vector<VmIdentityHints>& vms, const std::vector<nomad::Node>& nodes)
      : vms_(vms), nodes_(nodes), names_(nodes), hints_(vms, nodes) {}

  Links LinkAll() {
    Links links;
    for (std::size_t vm = 0; vm < vms_.size(); ++vm) links.of_vm.push_back(LinkOne(vm));
    RefuseSharedNodes(links);
    links.node_is_linked.assign(nodes_.size(), false);
    for (const Link& link : links.of_vm) {
      if (link.state == LinkState::kLinked) links.node_is_linked[link.node] = true;
      for (const std::size_t other : link.others) links.node_is_linked[other] = true;
    }
    return links;
  }

 private:
  Link LinkOne(std::size_t vm) {
    Nodes named = names_.NodesNamed(vms_[vm]);
    if (named.empty()) return {};
    SortBestFirst(named);
    const Nodes ready = ReadyAmong(named);
    if (ready.size() < 2) return MakeLink(vm, named.front(), named);
    const Nodes known = IdentifiedAmong(ready, vm);
    if (known.size() == 1 && AreFull(ready, known.front())) {
      return MakeLink(vm, known.front(), named);
    }
    Link link;
    link.state = LinkState::kTwoReady;
    link.others = ready;
    link.explanation = "several ready nodes have the name " + vms_[vm].name + ":";
    for (const std::size_t node : ready) link.explanation += " " + nodes_[node].id;
    return link;
  }

  void SortBestFirst(Nodes& named) const {
    std::sort(named.begin(), named.end(), [this](std::size_t a, std::size_t b) {
      const nomad::Node& x = nodes_[a];
      const nomad::Node& y = nodes_[b];
      // Nodes that an operator declared foreign come last.
      const bool x_foreign = IsDeclaredForeign(x);
      const bool y_foreign = IsDeclaredForeign(y);
      const int x_rank = -Rank(x.status);
      const int y_rank = -Rank(y.status);
      return std::tie(x_foreign, x_rank, y.create_index, x.id) <
             std::tie(y_foreign, y_rank, x.create_index, y.id);
    });
  }

  Nodes ReadyAmong(const Nodes& named) const {
    Nodes ready;
    for (const std::size_t node : named) {
      if (nodes_[node].status == nomad::NodeStatus::kReady && !IsDeclaredForeign(nodes_[node])) {
        ready.push_back(node);
      }
    }
    return ready;
  }

  // Whether all candidates but one are full, so that their identity hints are known: a stub may
  // have the same meta as that one.
  bool AreFull(const Nodes& candidates, std::size_t except) const {
    return std::all_of(candidates.begin(), candidates.end(),
                       [&](std::size_t node) { return node == except || nodes_[node].full; });
  }

  Nodes IdentifiedAmong(const Nodes& candidates, std::size_t vm) const {
    Nodes known;
    for (const std::size_t node : candidates) {
      if (hints_.Identifies(node, vm)) known.push_back(node);
    }
    return known;
  }

  // Links to the highest-ranking node of the name, unless an identity hint contradicts it.
  Link MakeLink(std::size_t vm, std::size_t best, const Nodes& named) const {
    Link link;
    const std::string& id = nodes_[best].id;
    if (IsDeclaredForeign(nodes_[best])) {
      link.explanation = "node " + id + " has the name " + vms_[vm].name +
                         ", but its meta.harvester_vm_uuid declares that it is not a VM";
    } else if (const IdentityHint* other = hints_.Contradiction(best, vm); other != nullptr) {
      link.explanation = "node " + id + " has the name " + vms_[vm].name + ", but its " +
                         other->what + " is that of VM " + vms_[other->vm].name;
    }
    if (!link.explanation.empty()) {
      link.state = LinkState::kContradicted;
      link.others = named;
      return link;
    }
    link.state = LinkState::kLinked;
    link.node = best;
    for (const std::size_t node : named) {
      if (node != best) link.others.push_back(node);
    }
    const std::string by = nodes_[best].full ? vms_[vm].node_attribute : "Name";
    link.explanation = "node " + id + " has the name by its " + by;
    for (const IdentityHint& hint : hints_.Of(best)) {
      link.explanation += ", confirmed by its " + hint.what;
    }
    return link;
  }

  // VMs with different node attributes can link to the same node: then none of them gets it.
  void RefuseSharedNodes(Links& links) const {
    std::map<std::size_t, Nodes> vms_of_node;
    for (std::size_t vm = 0; vm < links.of_vm.size(); ++vm) {
      const Link& link = links.of_vm[vm];
      if (link.state == LinkState::kLinked) vms_of_node[link.node].push_back(vm);
    }
    for (const auto& [node, vms] : vms_of_node) {
      if (vms.size() < 2) continue;
      for (const std::size_t vm : vms) {
        Link& link = links.of_vm[vm];
        link.state = LinkState::kContradicted;
        link.others.insert(link.others.begin(), node);
        link.explanation = "node " + nodes_[node].id + " has the names of several VMs";
      }
    }
  }

  const std::vector<VmIdentityHints>& vms_;
  const std::vector<nomad::Node>& nodes_;
  NameIndex names_;
  const IdentityHints hints_;
};

}  // namespace

Links LinkNodes(const std::vector<VmIdentityHints>& vms, const std::vector<nomad::Node>& nodes) {
  return Linker(vms, nodes).LinkAll();
}

}  // namespace nomad_harvester::nodepool
