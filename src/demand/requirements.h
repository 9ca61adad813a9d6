// SPDX-License-Identifier: Apache-2.0
// What work asks of a node besides room: whether the nodes of the pool have it, and a new one.
#ifndef NOMAD_HARVESTER_SRC_DEMAND_REQUIREMENTS_H_
#define NOMAD_HARVESTER_SRC_DEMAND_REQUIREMENTS_H_

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "nomad_harvester/demand/work.h"

#include "constraints.h"

namespace nomad_harvester::demand {

struct Requirement {
  // kIdentity: a constraint on what tells pools apart, such as ${node.class}.
  enum class Kind { kPlace, kIdentity, kDriver, kNetwork, kVolume, kConstraint };

  Kind kind = Kind::kConstraint;
  std::string text{};  // for people: "the driver docker"
  Truth on_new = Truth::kCannotTell;
  const NodeClasses::Classes* classes = nullptr;
  std::vector<Truth> by_class{};
  const std::vector<bool>* boots = nullptr;  // by the place of the node

  // A pool whose nodes do not meet it is not the one that the work is for.
  bool IsOfPool() const { return kind == Kind::kPlace || kind == Kind::kIdentity; }
  // By the place of the node. A node that boots has no driver and few attributes yet: it becomes
  // what a new node is.
  Truth On(std::size_t place) const {
    const Truth answer = by_class[classes->of_node[place]];
    if (answer == Truth::kYes || IsOfPool() || !(*boots)[place]) return answer;
    return ToTruth(on_new != Truth::kNo);
  }
  bool IsMetAnywhere() const {
    return std::find(by_class.begin(), by_class.end(), Truth::kYes) != by_class.end();
  }
};

// Asks each question once, whatever the number of groups that ask it. For one thread.
class Requirements {
 public:
  // The nodes and `new_node` must outlive it.
  Requirements(const std::vector<const PoolNode*>& nodes, const NewNode& new_node);

  // In the order in which they explain: the place first. Stay valid as long as this, which may not
  // move.
  std::vector<const Requirement*> Of(const Group& group);

 private:
  using Question = std::function<Truth(const nomad::Node&)>;
  const Requirement* Ask(Requirement::Kind kind, const std::string& text,
                         const NodeClasses::Classes& classes, const Question& question,
                         const std::function<Truth()>& on_new);

  const NodeClasses nodes_;
  std::vector<bool> boots_{};
  const NewNode& new_node_;
  std::map<std::pair<Requirement::Kind, std::string>, Requirement> asked_;
};

}  // namespace nomad_harvester::demand

#endif  // NOMAD_HARVESTER_SRC_DEMAND_REQUIREMENTS_H_
