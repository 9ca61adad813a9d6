// SPDX-License-Identifier: Apache-2.0
// Which node a VM became (rule C6).
#ifndef NOMAD_HARVESTER_NODEPOOL_LINK_H_
#define NOMAD_HARVESTER_NODEPOOL_LINK_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "nomad_harvester/nomad/types.h"

namespace nomad_harvester::nodepool {

// What can identify a VM to its node. Module nodepool knows nothing else of VMs.
struct VmIdentityHints {
  std::string name{};
  std::string firmware_uuid{};           // lower case; empty: unknown
  std::vector<std::string> addresses{};  // of its instance; empty: unknown
  std::string node_attribute{};          // "unique.hostname" or "meta.KEY"
};

enum class LinkState {
  kNone,          // no node has the VM's name
  kLinked,        // exactly one does, or one ready one beats others that are down
  kTwoReady,      // two or more ready nodes do: a real tie
  kContradicted,  // the node that has the name is, by an identity hint, another VM, or declared
                  // foreign, or it has the names of several VMs
};

struct Link {
  LinkState state = LinkState::kNone;
  // kLinked: the node. Index into the node list.
  std::size_t node = 0;
  // kTwoReady: the ready nodes. kContradicted: all that have the name. kLinked: the losers that
  // have the name, too.
  std::vector<std::size_t> others{};
  // For reports: which identity hint says what.
  std::string explanation{};
};

struct Links {
  std::vector<Link> of_vm{};           // one per VM, in order
  std::vector<bool> node_is_linked{};  // per node: some VM's link, whatever its state, names it
};

// Links every VM. A full node is known by the VM's node_attribute: the value up to the first dot,
// without case, equals the VM's name. A stub has no attributes: its Name, likewise, links
// provisionally if node_attribute is "unique.hostname" (or any other attribute: better than nothing
// until it is read in full). Identity hints (meta.harvester_vm_uuid, an address, unique.host_id)
// contradict only when they identify exactly one *other* VM of the list; a value that matches no
// VM, or that several nodes share, says nothing. Among several nodes of the name: ready beats
// initializing and disconnected beat down; then the higher create index; two ready ones are a tie,
// unless an identity hint identifies this VM on exactly one of them and the others are full, so
// that they would say so, too. Where another attribute than unique.hostname counts, stubs give way
// to a full node of the name. A node that is declared foreign never links: it is passed over if
// another node has the name, and contradicts if none does.
Links LinkNodes(const std::vector<VmIdentityHints>& vms, const std::vector<nomad::Node>& nodes);

// A host name's first part in lower case: what names of nodes and VMs are compared by.
std::string ShortHostName(std::string_view name);

// A node that operators declare to be no VM of ours: meta.harvester_vm_uuid = "none".
bool IsDeclaredForeign(const nomad::Node& node);
// meta.harvester_protect, Go bool; unreadable counts as true.
bool IsProtected(const nomad::Node& node);

}  // namespace nomad_harvester::nodepool

#endif  // NOMAD_HARVESTER_NODEPOOL_LINK_H_
