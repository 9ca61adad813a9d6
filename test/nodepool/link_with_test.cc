// SPDX-License-Identifier: Apache-2.0
// Rule C6: the link of one VM after one node was read again is that of the whole list.
#include <cstdint>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "nomad_harvester/nodepool/link.h"
#include "nomad_harvester/runtime/random.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nodepool/builders.h"
#include "support/seeded_random.h"

namespace nomad_harvester::nodepool {
namespace {

using nomad::NodeStatus;

constexpr std::uint64_t kSeed = 20261122;
constexpr int kWorlds = 5'000;

struct Change {
  std::size_t index = 0;
  std::optional<nomad::Node> now;  // nothing: the node is gone
};

struct SmallWorld {
  std::vector<VmIdentityHints> vms;
  std::vector<nomad::Node> nodes;
  Change change;
};

std::vector<nomad::Node> Changed(const SmallWorld& world) {
  std::vector<nomad::Node> nodes = world.nodes;
  const auto at = nodes.begin() + static_cast<std::ptrdiff_t>(world.change.index);
  if (world.change.now.has_value()) {
    *at = *world.change.now;
  } else {
    nodes.erase(at);
  }
  return nodes;
}

// A link with the nodes' IDs instead of their indexes.
struct NamedLink {
  LinkState state = LinkState::kNone;
  std::string node{};
  std::vector<std::string> others{};
  std::string explanation{};
  friend bool operator==(const NamedLink&, const NamedLink&) = default;
};

std::ostream& operator<<(std::ostream& out, const NamedLink& link) {
  out << "state " << static_cast<int>(link.state) << ", node \"" << link.node << "\", others";
  for (const std::string& other : link.others) out << " " << other;
  return out << ": " << link.explanation;
}

template <typename IdAt>
NamedLink Named(const Link& link, IdAt id_at) {
  NamedLink named{.state = link.state, .explanation = link.explanation};
  if (link.state == LinkState::kLinked) named.node = id_at(link.node);
  for (const std::size_t other : link.others) named.others.push_back(id_at(other));
  return named;
}

NamedLink WithOneNode(const SmallWorld& world, std::size_t vm) {
  const Change& change = world.change;
  const Link link =
      Linker(world.vms, world.nodes)
          .LinkWith(vm, world.nodes, change.index, change.now.has_value() ? &*change.now : nullptr);
  return Named(link, [&](std::size_t index) { return world.nodes[index].id; });
}

NamedLink WithWholeList(const SmallWorld& world, std::size_t vm) {
  const std::vector<nomad::Node> nodes = Changed(world);
  const Link link = Linker(world.vms, nodes).LinkAll(nodes).of_vm[vm];
  return Named(link, [&](std::size_t index) { return nodes[index].id; });
}

std::string Text(const nomad::Node& node) {
  std::string text = node.id + ": name " + node.name + (node.full ? ", full" : ", stub") +
                     ", status " + std::to_string(static_cast<int>(node.status)) + ", index " +
                     std::to_string(node.create_index) + ", address " + node.address;
  for (const auto& [key, value] : node.attributes) text += ", " + key + "=" + value;
  for (const auto& [key, value] : node.meta) text += ", meta." + key + "=" + value;
  return text + "\n";
}

std::string Text(const SmallWorld& world) {
  std::string text;
  for (const VmIdentityHints& vm : world.vms) {
    text += "VM " + vm.name + " by " + vm.node_attribute + ", uuid " + vm.firmware_uuid + "\n";
  }
  for (const nomad::Node& node : world.nodes) text += Text(node);
  const Change& change = world.change;
  return text + "now " + (change.now.has_value() ? Text(*change.now) : "gone: ") +
         world.nodes[change.index].id;
}

// Small worlds in which names, statuses and hints often coincide.
class Worlds {
 public:
  // `several`: VMs use different attributes, and nodes may share hints with each other.
  Worlds(runtime::Random& random, bool several) : random_(random), several_(several) {}

  SmallWorld Next() {
    SmallWorld world;
    used_.clear();
    const std::size_t vms = 1 + Below(3);
    for (std::size_t i = 0; i < vms; ++i) {
      VmIdentityHints vm{.name = kNames[i], .node_attribute = "unique.hostname"};
      if (several_ && Chance(3)) vm.node_attribute = "meta.vm";
      if (!Chance(5)) vm.firmware_uuid = "fw-" + std::to_string(several_ ? Below(3) : i);
      if (!Chance(3)) vm.addresses = {"10.0.0." + std::to_string(i)};
      if (Chance(2)) vm.node_id = "n" + std::to_string(Below(4));
      vm.node_is_lost = Chance(2);
      world.vms.push_back(std::move(vm));
    }
    const std::size_t nodes = 1 + Below(4);
    for (std::size_t i = 0; i < nodes; ++i) {
      world.nodes.push_back(SomeNode("n" + std::to_string(i), vms));
    }
    world.change.index = Below(nodes);
    if (!Chance(6)) world.change.now = SomeNode(world.nodes[world.change.index].id, vms);
    return world;
  }

 private:
  static constexpr const char* kNames[] = {"a", "b", "c", "x"};

  std::size_t Below(std::size_t limit) { return random_.Next() % limit; }
  bool Chance(std::size_t one_in) { return Below(one_in) == 0; }
  std::string SomeName() { return kNames[Chance(5) ? 3 : Below(3)]; }

  // Whether a node may have this hint: without `several`, no two have the same.
  bool MayHave(const std::string& hint) { return used_.insert(hint).second || several_; }

  nomad::Node SomeNode(const std::string& id, std::size_t vms) {
    constexpr NodeStatus kStatuses[] = {NodeStatus::kReady, NodeStatus::kReady, NodeStatus::kDown,
                                        NodeStatus::kInitializing};
    NodeBuilder builder(id);
    builder.Name(SomeName()).Status(kStatuses[Below(4)]).CreateIndex(Below(3));
    const std::string address = "10.0.0." + std::to_string(Below(vms + 1));
    if (Chance(3) && MayHave(address)) builder.Address(address);
    if (Chance(4)) return builder;  // a stub
    builder.HostName(SomeName() + (Chance(3) ? ".example.org" : ""));
    if (several_ && Chance(2)) builder.Meta("vm", SomeName());
    const std::string uuid = "fw-" + std::to_string(Below(vms));
    if (Chance(8)) {
      builder.Meta("harvester_vm_uuid", "none");
    } else if (Chance(2) && MayHave(uuid)) {
      builder.Meta("harvester_vm_uuid", uuid);
    }
    return builder;
  }

  runtime::Random& random_;
  const bool several_;
  std::set<std::string> used_;
};

TEST(LinkWith, C6_the_link_of_every_vm_is_that_of_the_changed_list) {
  const auto random = support::MakeSeededRandom(kSeed);
  Worlds worlds(*random, false);
  for (int i = 0; i < kWorlds; ++i) {
    const SmallWorld world = worlds.Next();
    for (std::size_t vm = 0; vm < world.vms.size(); ++vm) {
      ASSERT_EQ(WithOneNode(world, vm), WithWholeList(world, vm))
          << "VM " << world.vms[vm].name << " of world " << i << "\n"
          << Text(world);
    }
  }
}

// A hint that the new node shares with an old one counts for the old one, and a node that also has
// another VM's name by its attribute links to none: both link less.
TEST(LinkWith, C6_with_hints_that_several_nodes_share_a_node_read_again_links_only_if_it_would) {
  const auto random = support::MakeSeededRandom(kSeed);
  Worlds worlds(*random, true);
  int linked = 0;
  for (int i = 0; i < kWorlds; ++i) {
    const SmallWorld world = worlds.Next();
    for (std::size_t vm = 0; vm < world.vms.size(); ++vm) {
      const NamedLink one = WithOneNode(world, vm);
      if (one.state != LinkState::kLinked || one.node != world.nodes[world.change.index].id)
        continue;
      ++linked;
      const NamedLink all = WithWholeList(world, vm);
      ASSERT_EQ(one.node, all.node) << "VM " << world.vms[vm].name << " of world " << i << "\n"
                                    << Text(world);
    }
  }
  EXPECT_GT(linked, kWorlds / 10);
}

}  // namespace
}  // namespace nomad_harvester::nodepool
