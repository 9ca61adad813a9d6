// SPDX-License-Identifier: Apache-2.0
// Links each VM to its Nomad node (rule C6).
#ifndef NOMAD_HARVESTER_NODEPOOL_LINK_H_
#define NOMAD_HARVESTER_NODEPOOL_LINK_H_

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "nomad_harvester/nomad/types.h"

namespace nomad_harvester::nodepool {

// The properties of a VM used to find its node. Module nodepool uses nothing else about VMs.
struct VmIdentityHints {
  std::string name{};
  std::string firmware_uuid{};           // lower case; empty: unknown
  std::vector<std::string> addresses{};  // of its instance; empty: unknown
  std::string node_attribute{};          // "unique.hostname" or "meta.KEY"
  std::string node_id{};                 // of the node as which it joined; empty: none
  bool node_is_lost = false;             // that node has been down for two minutes; its guest runs
};

enum class LinkState {
  kNone,          // no node has the VM's name
  kLinked,        // one node is its node
  kAmbiguous,     // several nodes could be its node
  kContradicted,  // by an identity hint the node is another VM, or it is declared
                  // foreign, or it has the names of several VMs
};

struct Link {
  LinkState state = LinkState::kNone;
  // kLinked: the node. Index into the node list.
  std::size_t node = 0;
  // kAmbiguous: those nodes. kContradicted: all nodes with that name. kLinked: the other nodes
  // with that name.
  std::vector<std::size_t> others{};
  // For reports: the identity hints and their values.
  std::string explanation{};
};

struct Links {
  std::vector<Link> of_vm{};           // one per VM, in order
  std::vector<bool> node_is_linked{};  // per node: a link in any state names it
};

// True for the attributes ("unique.hostname") and meta ("meta.harvester_vm_uuid") that the rules
// read of every node, besides its VM's node_attribute.
bool IsReadOfNodes(std::string_view attribute);

// Links every VM as rule C6 says. A full node matches by the VM's node_attribute: its value up to
// the first dot equals the VM's name, ignoring case. A stub has no attributes; its Name, compared
// in the same way, links provisionally, even if node_attribute is not "unique.hostname"; then full
// nodes with the name are preferred to stubs. A node that is declared foreign never links: it is
// ignored if another node has the name, and gives kContradicted if none does.
//
// Immutable, cheap to copy, thread-safe. Keeps the tables of names and hints but not the nodes:
// callers must pass the list from which it was made.
class Linker {
 public:
  // O(VMs + nodes).
  Linker(std::vector<VmIdentityHints> vms, const std::vector<nomad::Node>& nodes);

  Links LinkAll(const std::vector<nomad::Node>& nodes) const;
  // Returns the link of one VM if `now` replaced node `index` of the list; null: that node is gone.
  // O(nodes with the VM's name). Only these nodes are reconsidered; the hints of other nodes are
  // those of the list.
  Link LinkWith(std::size_t vm, const std::vector<nomad::Node>& nodes, std::size_t index,
                const nomad::Node* now) const;

  // True if a VM other than `vm` has this firmware UUID, because copies have their original's UUID.
  bool IsUuidOfAnother(std::string_view uuid, std::size_t vm) const;

 private:
  struct Tables;
  std::shared_ptr<const Tables> tables_;
};

// Returns the first label of a host name in lower case, for comparing names of nodes and VMs.
std::string ShortHostName(std::string_view name);

// Returns meta.harvester_vm_uuid: the firmware UUID of the node's machine, by its user data.
std::string_view MachineUuidOf(const nomad::Node& node);
// True for 32 hexadecimal digits in five groups.
bool HasUuidForm(std::string_view text);
// True for a node that operators declare not to be a VM of the plugin: meta.harvester_vm_uuid =
// "none".
bool IsDeclaredForeign(const nomad::Node& node);
// What meta.harvester_protect says, a Go boolean or the RFC 3339 time until which it holds; any
// other value protects.
bool IsProtected(const nomad::Node& node, base::WallTime now);

}  // namespace nomad_harvester::nodepool

#endif  // NOMAD_HARVESTER_NODEPOOL_LINK_H_
