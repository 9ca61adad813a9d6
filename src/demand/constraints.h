// SPDX-License-Identifier: Apache-2.0
// Evaluates constraints as Nomad 1.6.3 does (hashicorp/nomad:scheduler/feasible.go,
// checkConstraint), on nodes that are there and on a new one, of which some values are not known.
#ifndef NOMAD_HARVESTER_SRC_DEMAND_CONSTRAINTS_H_
#define NOMAD_HARVESTER_SRC_DEMAND_CONSTRAINTS_H_

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nomad_harvester/demand/work.h"
#include "nomad_harvester/nodepool/identity.h"
#include "nomad_harvester/nomad/types.h"

#include "re2/re2.h"

namespace nomad_harvester::demand {

enum class Truth : char { kNo, kYes, kCannotTell };

// What a target such as "${attr.kernel.name}" stands for on a node.
struct Value {
  enum class Kind {
    kText,
    kMissing,
    kOwn,  // a value that no other node has
    kUnknown,
  };
  Kind kind = Kind::kUnknown;
  std::string_view text{};  // of kText
};

// On a node that was read in full. Views into `target` and `node`.
Value Resolve(std::string_view target, const nomad::Node& node);

// Nodes in classes of those for which targets stand for the same values. An answer about one of a
// class is the answer about all, so that 5,000 constraints on 10,000 nodes are few questions. For
// one thread.
class NodeClasses {
 public:
  struct Classes {
    std::vector<std::size_t> of_node{};          // by the place of the node
    std::vector<const nomad::Node*> examples{};  // one node of each class
  };
  explicit NodeClasses(std::vector<const nomad::Node*> nodes) : nodes_(std::move(nodes)) {}

  const std::vector<const nomad::Node*>& nodes() const { return nodes_; }
  // Stays valid.
  const Classes& By(const std::string& left, const std::string& right) const;
  // Of which each node is one.
  const Classes& Single() const;

 private:
  const std::vector<const nomad::Node*> nodes_;
  mutable std::map<std::pair<std::string, std::string>, Classes> classes_;
};

// A node that will be made for the pool: it is as all known nodes of the pool are, and has what the
// pool's identity says, which must outlive it. For one thread.
class NewNode {
 public:
  NewNode(std::vector<const nomad::Node*> known, const nodepool::PoolIdentity& identity)
      : known_(std::move(known)), identity_(identity) {}

  const NodeClasses& known() const { return known_; }
  // The value that all known nodes share, or that it will have for itself.
  Value Resolve(std::string_view target) const;
  // Likewise, but only what holds whatever the known nodes are.
  Value ResolveAlone(std::string_view target) const;

 private:
  const NodeClasses known_;
  const nodepool::PoolIdentity& identity_;
};

// The answer that all nodes give; without any, none can be told.
template <typename Question>
Truth Agreed(const std::vector<const nomad::Node*>& nodes, const Question& question) {
  if (nodes.empty()) return Truth::kCannotTell;
  const Truth first = question(*nodes.front());
  const bool agree = std::all_of(nodes.begin(), nodes.end(),
                                 [&](const auto* node) { return question(*node) == first; });
  return agree ? first : Truth::kCannotTell;
}

class ConstraintCheck {
 public:
  explicit ConstraintCheck(Constraint constraint);

  Truth On(const nomad::Node& node) const;
  Truth On(const NewNode& node) const;
  // "${attr.kernel.name} = linux", as Nomad writes it.
  std::string ToString() const;

 private:
  Truth Evaluate(Value left, Value right) const;
  Truth MatchesRegexp(std::string_view text, std::string_view pattern) const;

  const Constraint constraint_;
  std::shared_ptr<const re2::RE2> regexp_;  // if its pattern is the same for all nodes
};

inline Truth ToTruth(bool yes) { return yes ? Truth::kYes : Truth::kNo; }

// True if the pattern, in which "*" is any text, matches (ryanuber/go-glob:glob.go, as Nomad
// matches datacenters).
bool MatchesGlob(std::string_view pattern, std::string_view text);

}  // namespace nomad_harvester::demand

#endif  // NOMAD_HARVESTER_SRC_DEMAND_CONSTRAINTS_H_
