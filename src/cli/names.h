// SPDX-License-Identifier: Apache-2.0
// Names of states in the commands' output, and the parts of a snapshot they print. Private to
// module cli.
#ifndef NOMAD_HARVESTER_CLI_NAMES_H_
#define NOMAD_HARVESTER_CLI_NAMES_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nomad_harvester/scaling/snapshot.h"

namespace nomad_harvester::cli {

std::string_view NodeStatusName(nomad::NodeStatus status);
std::string_view LinkName(nodepool::LinkState state);
// "pending" for the member "harvester.pending" of Status' meta; nothing for members that are not
// counters, or that only the plugin's own process knows.
std::optional<std::string_view> CounterName(std::string_view meta_key);

// The pool's VMs, by name.
std::vector<const scaling::VmView*> VmsOf(const scaling::PoolSnapshot& snapshot);
// The node that a VM is linked to; null while Nomad cannot be read, even if a part of it was read.
const nomad::Node* ReadableNode(const scaling::VmView& view, const scaling::PoolSnapshot& snapshot);
// The nodes of the Nomad pool that are linked to no VM, by name.
std::vector<const nomad::Node*> UnlinkedNodesOf(const scaling::PoolSnapshot& snapshot);

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_NAMES_H_
