// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/nodepool/link.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/text.h"
#include "nomad_harvester/nodepool/readiness.h"

#include "absl/strings/ascii.h"
#include "value_index.h"

namespace nomad_harvester::nodepool {
namespace {

using Indexes = std::vector<std::size_t>;

constexpr char kHostName[] = "unique.hostname";
constexpr char kVmUuid[] = "harvester_vm_uuid";
constexpr std::string_view kMetaPrefix = "meta.";

std::string_view FirstLabel(std::string_view name) { return name.substr(0, name.find('.')); }

// A stub has no attributes; its Name is the host name unless the client's configuration overrides
// it (hashicorp/nomad:nomad/structs/structs.go, Node.Stub).
std::string_view NameOf(const nomad::Node& node, std::string_view attribute) {
  if (!node.full) return FirstLabel(node.name);
  if (attribute.starts_with(kMetaPrefix)) {
    return FirstLabel(base::ValueOf(node.meta, attribute.substr(kMetaPrefix.size())));
  }
  return FirstLabel(base::ValueOf(node.attributes, attribute));
}

// The identity hints of rule C6: properties other than the name that show which VM a node is.
enum HintKind : std::size_t { kMetaUuid, kAddress, kHostId, kHintKinds };

// A value that identifies a node as a certain VM.
struct IdentityHint {
  HintKind kind = kMetaUuid;
  std::string_view value{};
  std::size_t vm = 0;
};
using Hints = absl::InlinedVector<IdentityHint, 4>;

// Returns the values of the node that could identify a VM; the hints' `vm` is not set yet.
Hints ValuesOf(const nomad::Node& node) {
  Hints values;
  const auto add = [&values](HintKind kind, std::string_view value) {
    if (!value.empty()) values.push_back({kind, value});
  };
  if (!node.full) {
    add(kAddress, node.address);
    return values;
  }
  add(kMetaUuid, base::ValueOf(node.meta, kVmUuid));
  add(kAddress, node.address);
  // The client reports it a second time, and may do so differently.
  const std::string_view other = base::ValueOf(node.attributes, "unique.network.ip-address");
  if (!base::EqualsIgnoreCase(node.address, other)) add(kAddress, other);
  // No release of Nomad up to 2.0.5 reports it; its main branch does.
  add(kHostId, base::ValueOf(node.attributes, "unique.host_id"));
  return values;
}

std::string Describe(const IdentityHint& hint) {
  if (hint.kind == kAddress) return "address " + base::AsciiLower(hint.value);
  return hint.kind == kMetaUuid ? "meta.harvester_vm_uuid" : "unique.host_id";
}

// Ranks nodes with the same name by status: higher means more likely the VM's current node.
int Rank(nomad::NodeStatus status) {
  if (status == nomad::NodeStatus::kReady) return 2;
  return status == nomad::NodeStatus::kDown ? 0 : 1;
}

// Nodes by index. One of them may be replaced by a later read; if that read found no node, its
// index must not be used.
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

bool IsAnother(const ValueIndex::Entry* entry, std::size_t vm) {
  return entry != nullptr && (entry->several_vms || entry->vm != vm);
}

const IdentityHint* Contradiction(const Hints& hints, std::size_t vm) {
  const auto found = std::find_if(hints.begin(), hints.end(),
                                  [vm](const IdentityHint& hint) { return hint.vm != vm; });
  return found == hints.end() ? nullptr : &*found;
}

}  // namespace

struct Linker::Tables {
  Tables(std::vector<VmIdentityHints> v, const std::vector<nomad::Node>& nodes)
      : vms(std::move(v)) {
    for (std::size_t i = 0; i < vms.size(); ++i) {
      names[vms[i].node_attribute].AddVm(FirstLabel(vms[i].name), i);
      ids.AddVm(vms[i].node_id, i);
      hints[kMetaUuid].AddVm(vms[i].firmware_uuid, i);
      hints[kHostId].AddVm(vms[i].firmware_uuid, i);
      for (const std::string& address : vms[i].addresses) {
        hints[kAddress].AddVm(address, i);
      }
    }
    const bool have_addresses = std::any_of(
        vms.begin(), vms.end(), [](const VmIdentityHints& vm) { return !vm.addresses.empty(); });
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      ids.AddNode(nodes[i].id, i);
      for (auto& [attribute, table] : names) table.AddNode(NameOf(nodes[i], attribute), i);
      if (!nodes[i].full && !have_addresses) continue;  // nothing to compare a stub with
      for (const IdentityHint& hint : ValuesOf(nodes[i])) {
        hints[hint.kind].AddNode(hint.value, i);
      }
    }
  }

  std::optional<std::size_t> RecordedNode(std::size_t vm) const {
    const ValueIndex::Entry* recorded = ids.Find(vms[vm].node_id);
    if (recorded == nullptr || recorded->nodes.empty()) return std::nullopt;
    return recorded->nodes.front();
  }

  // Returns the nodes with the VM's name, in the order of the list.
  Indexes NodesNamed(std::size_t vm) const {
    const ValueIndex::Entry* named =
        names.at(vms[vm].node_attribute).Find(FirstLabel(vms[vm].name));
    return named == nullptr ? Indexes() : Indexes(named->nodes.begin(), named->nodes.end());
  }

  // True if the node has the name of another VM in any attribute used to link VMs.
  bool IsNamedAfterAnother(const nomad::Node& node, std::size_t vm) const {
    return std::any_of(names.begin(), names.end(), [&](const auto& entry) {
      return IsAnother(entry.second.Find(NameOf(node, entry.first)), vm);
    });
  }

  // Returns the hints of the node at `index` of the list; `node` may be a later read of it. A value
  // gives no hint if no VM or several VMs have it, or if another node also has it.
  Hints HintsOf(std::size_t index, const nomad::Node& node) const {
    Hints known;
    for (IdentityHint hint : ValuesOf(node)) {
      const ValueIndex::Entry* entry = hints[hint.kind].Find(hint.value);
      if (entry == nullptr || entry->several_vms) continue;
      const bool shared = std::any_of(entry->nodes.begin(), entry->nodes.end(),
                                      [index](std::size_t other) { return other != index; });
      hint.vm = entry->vm;
      if (!shared) known.push_back(hint);
    }
    return known;
  }

  // `recorded` is the node as which the VM joined, whatever its name is now.
  Link LinkOne(std::size_t vm, Indexes named, std::optional<std::size_t> recorded,
               const NodesNow& nodes) const {
    PreferFull(vm, nodes, &named);
    SortBestFirst(nodes, &named);
    if (recorded.has_value() && IsDeclaredForeign(nodes[*recorded])) recorded.reset();
    Indexes candidates = CandidatesAmong(named, recorded, nodes);
    const auto has_name = [&](std::size_t node) {
      return std::find(named.begin(), named.end(), node) != named.end();
    };
    if (candidates.size() > 1) {
      const Indexes known = IdentifiedAmong(candidates, vm, nodes);
      if (known.size() == 1 && has_name(known.front()) &&
          AreFull(candidates, known.front(), nodes) &&
          recorded.value_or(known.front()) == known.front()) {
        return MakeLink(vm, known.front(), named, nodes);
      }
      if (recorded.has_value() && IsLost(vm, nodes[*recorded])) {
        KeepYounger(*recorded, nodes, &candidates);
      }
    }
    if (candidates.size() > 1) return MakeAmbiguous(candidates, recorded, nodes);
    if (candidates.empty()) candidates = named;
    if (candidates.empty() || !has_name(candidates.front())) return {};
    return MakeLink(vm, candidates.front(), named, nodes);
  }

  // Returns the nodes that could be the VM's now: the recorded one, and those with its name. One
  // that is down could only be if the recorded one is not ready, and it is younger.
  static Indexes CandidatesAmong(const Indexes& named, std::optional<std::size_t> recorded,
                                 const NodesNow& nodes) {
    Indexes candidates;
    const bool replaceable =
        recorded.has_value() && nodes[*recorded].status != nomad::NodeStatus::kReady;
    for (const std::size_t node : named) {
      if (node == recorded || IsDeclaredForeign(nodes[node])) continue;
      const bool younger = replaceable && nodes[node].create_index > nodes[*recorded].create_index;
      if (nodes[node].status != nomad::NodeStatus::kDown || younger) candidates.push_back(node);
    }
    if (recorded.has_value()) candidates.push_back(*recorded);
    return candidates;
  }

  bool IsLost(std::size_t vm, const nomad::Node& recorded) const {
    return vms[vm].node_is_lost && recorded.status == nomad::NodeStatus::kDown;
  }

  // A client that registers anew has a younger node than before.
  static void KeepYounger(std::size_t recorded, const NodesNow& nodes, Indexes* candidates) {
    Indexes younger;
    for (const std::size_t node : *candidates) {
      if (nodes[node].create_index > nodes[recorded].create_index) younger.push_back(node);
    }
    if (!younger.empty()) *candidates = std::move(younger);
  }

  static Link MakeAmbiguous(const Indexes& candidates, std::optional<std::size_t> recorded,
                            const NodesNow& nodes) {
    Link link;
    link.state = LinkState::kAmbiguous;
    link.others = candidates;
    link.explanation = "several nodes could be it:";
    for (const std::size_t node : candidates) {
      link.explanation += (node == candidates.front() ? " " : ", ") + nodes[node].id + " (" +
                          StatusText(nodes[node]) +
                          (node == recorded ? ", the one it joined as)" : ")");
    }
    return link;
  }

  // If another attribute is configured, a stub's Name is only a guess, so full nodes with the name
  // are preferred.
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

  // True if all candidates other than `except` are full, so that their identity hints are known. A
  // stub may have the same meta as `except`.
  static bool AreFull(const Indexes& candidates, std::size_t except, const NodesNow& nodes) {
    return std::all_of(candidates.begin(), candidates.end(),
                       [&](std::size_t node) { return node == except || nodes[node].full; });
  }

  Indexes IdentifiedAmong(const Indexes& candidates, std::size_t vm, const NodesNow& nodes) const {
    Indexes known;
    for (const std::size_t node : candidates) {
      const Hints seen = HintsOf(node, nodes[node]);
      if (std::any_of(seen.begin(), seen.end(),
                      [vm](const IdentityHint& hint) { return hint.vm == vm; })) {
        known.push_back(node);
      }
    }
    return known;
  }

  // Links the VM to `best`, unless an operator declared that node foreign or an identity hint
  // contradicts it. `named` has all nodes with the VM's name.
  Link MakeLink(std::size_t vm, std::size_t best, const Indexes& named,
                const NodesNow& nodes) const {
    Link link;
    const nomad::Node& node = nodes[best];
    const Hints seen = HintsOf(best, node);
    if (IsDeclaredForeign(node)) {
      link.explanation = "node " + node.id + " has the name " + vms[vm].name +
                         ", but its meta.harvester_vm_uuid declares that it is not a VM";
    } else if (const IdentityHint* other = Contradiction(seen, vm); other != nullptr) {
      link.explanation = "node " + node.id + " has the name " + vms[vm].name + ", but its " +
                         Describe(*other) + " is that of VM " + vms[other->vm].name;
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
    link.explanation.reserve(80 + node.id.size());
    link.explanation += "node ";
    link.explanation += node.id;
    link.explanation += " has the VM's name as its ";
    link.explanation += node.full ? vms[vm].node_attribute : "Name";
    for (const IdentityHint& hint : seen)
      link.explanation += ", confirmed by its " + Describe(hint);
    return link;
  }

  static void Refuse(const nomad::Node& node, Link* link) {
    link->state = LinkState::kContradicted;
    link->others.insert(link->others.begin(), link->node);
    link->explanation = "node " + node.id + " has the names of several VMs";
  }

  // VMs with different node attributes may link to the same node; then none of them gets it.
  static void RefuseSharedNodes(const std::vector<nomad::Node>& nodes, std::vector<Link>* links) {
    std::vector<std::uint32_t> users(nodes.size());
    for (const Link& link : *links) {
      if (link.state == LinkState::kLinked) ++users[link.node];
    }
    for (Link& link : *links) {
      if (link.state == LinkState::kLinked && users[link.node] > 1) Refuse(nodes[link.node], &link);
    }
  }

  const std::vector<VmIdentityHints> vms;
  std::map<std::string_view, ValueIndex> names{};  // by attribute
  ValueIndex ids{};                                // of the nodes as which VMs joined
  std::array<ValueIndex, kHintKinds> hints{};
};

Linker::Linker(std::vector<VmIdentityHints> vms, const std::vector<nomad::Node>& nodes)
    : tables_(std::make_shared<const Tables>(std::move(vms), nodes)) {}

Links Linker::LinkAll(const std::vector<nomad::Node>& nodes) const {
  const NodesNow now(nodes);
  Links links;
  links.of_vm.reserve(tables_->vms.size());
  for (std::size_t vm = 0; vm < tables_->vms.size(); ++vm) {
    links.of_vm.push_back(
        tables_->LinkOne(vm, tables_->NodesNamed(vm), tables_->RecordedNode(vm), now));
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
  const VmIdentityHints& hints = tables_->vms[vm];
  const std::string_view name = FirstLabel(hints.name);
  Indexes named = tables_->NodesNamed(vm);
  std::erase(named, index);
  if (now != nullptr && !name.empty() &&
      base::EqualsIgnoreCase(NameOf(*now, hints.node_attribute), name)) {
    named.push_back(index);
  }
  std::optional<std::size_t> recorded = tables_->RecordedNode(vm);
  if (now == nullptr && recorded == index) recorded.reset();
  const NodesNow nodes_now(nodes, index, now);
  Link link = tables_->LinkOne(vm, std::move(named), recorded, nodes_now);
  if (link.state == LinkState::kLinked && tables_->IsNamedAfterAnother(nodes_now[link.node], vm)) {
    Tables::Refuse(nodes_now[link.node], &link);
  }
  return link;
}

bool Linker::IsUuidOfAnother(std::string_view uuid, std::size_t vm) const {
  return IsAnother(tables_->hints[kMetaUuid].Find(uuid), vm);
}

bool IsReadOfNodes(std::string_view attribute) {
  constexpr std::array<std::string_view, 5> kNames = {kHostName, "unique.network.ip-address",
                                                      "unique.host_id", "meta.harvester_vm_uuid",
                                                      "meta.harvester_protect"};
  return std::find(kNames.begin(), kNames.end(), attribute) != kNames.end();
}

std::string ShortHostName(std::string_view name) { return base::AsciiLower(FirstLabel(name)); }

std::string_view MachineUuidOf(const nomad::Node& node) {
  return base::ValueOf(node.meta, kVmUuid);
}

bool HasUuidForm(std::string_view text) {
  constexpr std::string_view kForm = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
  return std::equal(text.begin(), text.end(), kForm.begin(), kForm.end(), [](char c, char form) {
    return form == '-' ? c == '-' : absl::ascii_isxdigit(static_cast<unsigned char>(c));
  });
}

bool IsDeclaredForeign(const nomad::Node& node) {
  return base::EqualsIgnoreCase(MachineUuidOf(node), "none");
}

bool IsProtected(const nomad::Node& node, base::WallTime now) {
  const auto found = node.meta.find("harvester_protect");
  return found != node.meta.end() && base::ParseHold(found->second).HoldsAt(now);
}

}  // namespace nomad_harvester::nodepool
