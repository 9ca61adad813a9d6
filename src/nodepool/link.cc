// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/nodepool/link.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <utility>

#include "identity_hints.h"
#include "name_index.h"

namespace nomad_harvester::nodepool {
namespace {

using Indexes = std::vector<std::size_t>;

constexpr std::string_view kHostName = "unique.hostname";

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

// Nodes by index, one of which may have been read again, or be gone.
class NodesNow {
 public:
  explicit NodesNow(const std::vector<nomad::Node>& nodes) : nodes_(nodes) {}
  NodesNow(const std::vector<nomad::Node>& nodes, std::size_t index, const nomad::Node* now)
      : nodes_(nodes), index_(index), now_(now) {}
  const nomad::Node& operator[](std::size_t i) const { return i == index_ ? *now_ : nodes_[i]; }

 private:
  const std::vector<nomad::Node>& nodes_;
  std::size_t index_ = SIZE_MAX;
  const nomad::Node* now_ = nullptr;
};

const IdentityHint* Contradiction(const std::vector<IdentityHint>& hints, std::size_t vm) {
  const auto found = std::find_if(hints.begin(), hints.end(),
                                  [vm](const IdentityHint& hint) { return hint.vm != vm; });
  return found == hints.end() ? nullptr : &*found;
}

bool Identifies(const std::vector<IdentityHint>& hints, std::size_t vm) {
  return std::any_of(hints.begin(), hints.end(),
                     [vm](const IdentityHint& hint) { return hint.vm == vm; });
}

}  // namespace

struct Linker::Tables {
  Tables(std::vector<VmIdentityHints> v, const std::vector<nomad::Node>& nodes)
      : vms(std::move(v)), names(vms, nodes), hints(vms, nodes) {}

  Link LinkOne(std::size_t vm, Indexes named, const NodesNow& nodes) const {
    PreferFull(vm, nodes, &named);
    if (named.empty()) return {};
    SortBestFirst(nodes, &named);
    const Indexes ready = ReadyAmong(named, nodes);
    if (ready.size() < 2) return MakeLink(vm, named.front(), named, nodes);
    const Indexes known = IdentifiedAmong(ready, vm, nodes);
    if (known.size() == 1 && AreFull(ready, known.front(), nodes)) {
      return MakeLink(vm, known.front(), named, nodes);
    }
    Link link;
    link.state = LinkState::kTwoReady;
    link.others = ready;
    link.explanation = "several ready nodes have the name " + vms[vm].name + ":";
    for (const std::size_t node : ready) link.explanation += " " + nodes[node].id;
    return link;
  }

  // If another attribute is configured, a stub's Name is only a guess: full nodes that have the
  // name are preferred.
  void PreferFull(std::size_t vm, const NodesNow& nodes, Indexes* named) const {
    if (vms[vm].node_attribute == kHostName) return;
    const auto is_full = [&](std::size_t i) { return nodes[i].full; };
    if (std::none_of(named->begin(), named->end(), is_full)) return;
    std::erase_if(*named, [&](std::size_t i) { return !is_full(i); });
  }

  static void SortBestFirst(const NodesNow& nodes, Indexes* named) {
    std::sort(named->begin(), named->end(), [&](std::size_t a, std::size_t b) {
      const nomad::Node& x = nodes[a];
      const nomad::Node& y = nodes[b];
      // Nodes that an operator declared foreign come last.
      const bool x_foreign = IsDeclaredForeign(x);
      const bool y_foreign = IsDeclaredForeign(y);
      const int x_rank = -Rank(x.status);
      const int y_rank = -Rank(y.status);
      return std::tie(x_foreign, x_rank, y.create_index, x.id) <
             std::tie(y_foreign, y_rank, x.create_index, y.id);
    });
  }

  static Indexes ReadyAmong(const Indexes& named, const NodesNow& nodes) {
    Indexes ready;
    for (const std::size_t node : named) {
      if (nodes[node].status == nomad::NodeStatus::kReady && !IsDeclaredForeign(nodes[node])) {
        ready.push_back(node);
      }
    }
    return ready;
  }

  // Whether all candidates but one are full, so that their identity hints are known: a stub may
  // have the same meta as that one.
  static bool AreFull(const Indexes& candidates, std::size_t except, const NodesNow& nodes) {
    return std::all_of(candidates.begin(), candidates.end(),
                       [&](std::size_t node) { return node == except || nodes[node].full; });
  }

  Indexes IdentifiedAmong(const Indexes& candidates, std::size_t vm, const NodesNow& nodes) const {
    Indexes known;
    for (const std::size_t node : candidates) {
      if (Identifies(hints.Of(node, nodes[node]), vm)) known.push_back(node);
    }
    return known;
  }

  // Links to the highest-ranking node of the name, unless an identity hint contradicts it.
  Link MakeLink(std::size_t vm, std::size_t best, const Indexes& named,
                const NodesNow& nodes) const {
    Link link;
    const nomad::Node& node = nodes[best];
    const std::vector<IdentityHint> seen = hints.Of(best, node);
    if (IsDeclaredForeign(node)) {
      link.explanation = "node " + node.id + " has the name " + vms[vm].name +
                         ", but its meta.harvester_vm_uuid declares that it is not a VM";
    } else if (const IdentityHint* other = Contradiction(seen, vm); other != nullptr) {
      link.explanation = "node " + node.id + " has the name " + vms[vm].name + ", but its " +
                         other->what + " is that of VM " + vms[other->vm].name;
    }
    if (!link.explanation.empty()) {
      link.state = LinkState::kContradicted;
      link.others = named;
      return link;
    }
    link.state = LinkState::kLinked;
    link.node = best;
    for (const std::size_t other : named) {
      if (other != best) link.others.push_back(other);
    }
    const std::string by = node.full ? vms[vm].node_attribute : "Name";
    link.explanation = "node " + node.id + " has the name by its " + by;
    for (const IdentityHint& hint : seen) link.explanation += ", confirmed by its " + hint.what;
    return link;
  }

  static void Refuse(const nomad::Node& node, Link* link) {
    link->state = LinkState::kContradicted;
    link->others.insert(link->others.begin(), link->node);
    link->explanation = "node " + node.id + " has the names of several VMs";
  }

  // VMs with different node attributes can link to the same node: then none of them gets it.
  static void RefuseSharedNodes(const std::vector<nomad::Node>& nodes, std::vector<Link>* links) {
    std::vector<std::size_t> users(nodes.size());
    for (const Link& link : *links) {
      if (link.state == LinkState::kLinked) ++users[link.node];
    }
    for (Link& link : *links) {
      if (link.state == LinkState::kLinked && users[link.node] > 1) Refuse(nodes[link.node], &link);
    }
  }

  const std::vector<VmIdentityHints> vms;
  const NameIndex names;
  const IdentityHints hints;
};

Linker::Linker(std::vector<VmIdentityHints> vms, const std::vector<nomad::Node>& nodes)
    : tables_(std::make_shared<const Tables>(std::move(vms), nodes)) {}

Links Linker::LinkAll(const std::vector<nomad::Node>& nodes) const {
  const NodesNow now(nodes);
  Links links;
  links.of_vm.reserve(tables_->vms.size());
  for (std::size_t vm = 0; vm < tables_->vms.size(); ++vm) {
    links.of_vm.push_back(tables_->LinkOne(vm, tables_->names.NodesNamed(tables_->vms[vm]), now));
  }
  Tables::RefuseSharedNodes(nodes, &links.of_vm);
  links.node_is_linked.assign(nodes.size(), false);
  for (const Link& link : links.of_vm) {
    if (link.state == LinkState::kLinked) links.node_is_linked[link.node] = true;
    for (const std::size_t other : link.others) links.node_is_linked[other] = true;
  }
  return links;
}

Link Linker::LinkWith(std::size_t vm, const std::vector<nomad::Node>& nodes, std::size_t index,
                      const nomad::Node* now) const {
  Indexes named = tables_->names.NodesNamed(tables_->vms[vm]);
  std::erase(named, index);
  if (now != nullptr && NameIndex::Matches(*now, tables_->vms[vm])) named.push_back(index);
  const NodesNow nodes_now(nodes, index, now);
  Link link = tables_->LinkOne(vm, std::move(named), nodes_now);
  if (link.state == LinkState::kLinked &&
      tables_->names.IsNamedAfterAnother(nodes_now[link.node], vm)) {
    Tables::Refuse(nodes_now[link.node], &link);
  }
  return link;
}

}  // namespace nomad_harvester::nodepool
