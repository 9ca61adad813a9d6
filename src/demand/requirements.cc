// SPDX-License-Identifier: Apache-2.0
#include "requirements.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "nomad_harvester/base/parse.h"

#include "absl/strings/str_join.h"

namespace nomad_harvester::demand {
namespace {

using Asks = Requirement::Kind;

// Of clients whose configuration names none.
constexpr std::string_view kDefaultPool = "default";

// What tells pools apart, as a query does.
constexpr std::array<std::string_view, 3> kIdentity = {"${node.class}", "${node.datacenter}",
                                                       "${node.pool}"};

// hashicorp/nomad:scheduler/feasible.go, hasDrivers: the client's report counts, and the attribute
// if there is none.
Truth HasDriver(const std::string& name, const nomad::Node& node) {
  for (const nomad::Driver& driver : node.drivers) {
    if (driver.name == name) return ToTruth(driver.detected && driver.healthy);
  }
  if (!node.full) return Truth::kNo;
  const auto attribute = node.attributes.find("driver." + name);
  return ToTruth(attribute != node.attributes.end() &&
                 base::ParseGoBool(attribute->second).value_or(false));
}

// A volume that was created through Nomad's API is on its node alone.
Truth HasVolume(const VolumeNeed& need, const nomad::Node& node, bool also_dynamic) {
  const auto& dynamic = node.dynamic_host_volumes;
  if (!also_dynamic && std::find(dynamic.begin(), dynamic.end(), need.name) != dynamic.end()) {
    return Truth::kNo;
  }
  return ToTruth(std::any_of(
      node.host_volumes.begin(), node.host_volumes.end(), [&](const nomad::HostVolume& volume) {
        return volume.name == need.name && (need.read_only || !volume.read_only);
      }));
}

// A client that reports no network is not asked for one.
Truth HasNetwork(const std::string& mode, const nomad::Node& node) {
  const auto& modes = node.network_modes;
  return ToTruth(modes.empty() || std::find(modes.begin(), modes.end(), mode) != modes.end());
}

bool IsOnIdentity(const Constraint& constraint) {
  return std::any_of(kIdentity.begin(), kIdentity.end(), [&](std::string_view target) {
    return constraint.left == target || constraint.right == target;
  });
}

bool IsInPool(const Group& group, std::string_view pool) {
  return group.node_pool.empty() || group.node_pool == "all" || group.node_pool == pool;
}
bool IsInDatacenters(const Group& group, std::string_view datacenter) {
  return std::any_of(group.datacenters.begin(), group.datacenters.end(),
                     [&](const std::string& glob) { return MatchesGlob(glob, datacenter); });
}

// A new node may be where any known one is. Before the first one, its node pool is taken to be
// Nomad's default, but never as a reason to refuse work.
Truth HasPlace(const Group& group, const NewNode& node) {
  const auto& known = node.known().By("${node.datacenter}", "${node.pool}").examples;
  if (!known.empty()) {
    return ToTruth(std::any_of(known.begin(), known.end(), [&](const nomad::Node* each) {
      return IsInPool(group, each->node_pool) && IsInDatacenters(group, each->datacenter);
    }));
  }
  const Value pool = node.ResolveAlone("${node.pool}");
  const Value datacenter = node.ResolveAlone("${node.datacenter}");
  const bool knows_pool = pool.kind == Value::Kind::kText;
  const bool knows_datacenter = datacenter.kind == Value::Kind::kText;
  const bool in_pool = IsInPool(group, knows_pool ? pool.text : kDefaultPool);
  const bool in_datacenters = IsInDatacenters(group, datacenter.text);  // if not known: by "*"
  if ((knows_pool && !in_pool) || (knows_datacenter && !in_datacenters)) return Truth::kNo;
  return in_pool && in_datacenters ? Truth::kYes : Truth::kCannotTell;
}

std::vector<const nomad::Node*> NodesOf(const std::vector<const PoolNode*>& pool) {
  std::vector<const nomad::Node*> nodes;
  nodes.reserve(pool.size());
  for (const PoolNode* node : pool) nodes.push_back(node->node.get());
  return nodes;
}

}  // namespace

Requirements::Requirements(const std::vector<const PoolNode*>& nodes, const NewNode& new_node)
    : nodes_(NodesOf(nodes)), new_node_(new_node) {
  for (const nomad::Node* node : nodes_.nodes()) {
    boots_.push_back(node->status == nomad::NodeStatus::kInitializing);
  }
}

std::vector<const Requirement*> Requirements::Of(const Group& group) {
  std::vector<const Requirement*> all;
  const auto on_known = [&](const Question& question) {
    return [this, question] { return Agreed(new_node_.known().nodes(), question); };
  };
  const std::string place =
      "its datacenters are " + absl::StrJoin(group.datacenters, ", ") +
      (group.node_pool.empty() ? "" : ", its node pool is " + group.node_pool);
  all.push_back(Ask(
      Asks::kPlace, place, nodes_.By("${node.datacenter}", "${node.pool}"),
      [&](const nomad::Node& node) {
        return ToTruth(IsInPool(group, node.node_pool) && IsInDatacenters(group, node.datacenter));
      },
      [&] { return HasPlace(group, new_node_); }));
  for (const std::string& driver : group.drivers) {
    const Question question = [&](const nomad::Node& node) { return HasDriver(driver, node); };
    all.push_back(
        Ask(Asks::kDriver, "the driver " + driver, nodes_.Single(), question, on_known(question)));
  }
  for (const Constraint& constraint : group.constraints) {
    const ConstraintCheck check(constraint);
    all.push_back(Ask(
        IsOnIdentity(constraint) ? Asks::kIdentity : Asks::kConstraint, check.ToString(),
        nodes_.By(constraint.left, constraint.right),
        [&](const nomad::Node& node) { return check.On(node); },
        [&] { return check.On(new_node_); }));
  }
  for (const VolumeNeed& need : group.host_volumes) {
    all.push_back(Ask(
        Asks::kVolume, "the host volume " + need.name + (need.read_only ? "" : " to write to"),
        nodes_.Single(),
        [&](const nomad::Node& node) { return HasVolume(need, node, /*also_dynamic=*/true); },
        on_known([&](const nomad::Node& node) {
          return HasVolume(need, node, /*also_dynamic=*/false);
        })));
  }
  if (!group.network_mode.empty() && group.network_mode != "none") {
    const Question question = [&](const nomad::Node& node) {
      return HasNetwork(group.network_mode, node);
    };
    all.push_back(Ask(Asks::kNetwork, "the network mode " + group.network_mode, nodes_.Single(),
                      question, on_known(question)));
  }
  return all;
}

const Requirement* Requirements::Ask(Asks kind, const std::string& text,
                                     const NodeClasses::Classes& classes, const Question& question,
                                     const std::function<Truth()>& on_new) {
  const auto [found, is_new] = asked_.try_emplace({kind, text});
  Requirement& requirement = found->second;
  if (!is_new) return &requirement;
  requirement = {
      .kind = kind, .text = text, .on_new = on_new(), .classes = &classes, .boots = &boots_};
  // Of nodes that differ in driver or network, a new one is taken to be like the better ones: they
  // may be unhealthy for a moment.
  const bool heals = kind == Asks::kDriver || kind == Asks::kNetwork;
  if (heals && requirement.on_new == Truth::kCannotTell) requirement.on_new = Truth::kYes;
  for (const nomad::Node* node : classes.examples) requirement.by_class.push_back(question(*node));
  return &requirement;
}

}  // namespace nomad_harvester::demand
