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

class Requirement {
 public:
  // kIdentity: a constraint on what tells pools apart, such as ${node.class}.
  enum class Kind { kPlace, kIdentity, kDriver, kNetwork, kVolume, kConstraint };

  const std::string& text() const { return text_; }  // for people: "the driver docker"
  // A pool whose nodes do not meet it is not the one that the work is for.
  bool IsOfPool() const { return kind_ == Kind::kPlace || kind_ == Kind::kIdentity; }
  // By the place of the node. A node that boots has no driver and few attributes yet: it becomes
  // what a new node is.
  Truth On(std::size_t place) const {
    const Truth answer = by_class_[classes_->of_node[place]];
    if (answer == Truth::kYes || IsOfPool() || !(*boots_)[place]) return answer;
    return ToTruth(on_new_ != Truth::kNo);
  }
  bool IsMetAnywhere() const {
    return std::find(by_class_.begin(), by_class_.end(), Truth::kYes) != by_class_.end();
  }
  // Of nodes that differ in driver or network, a new one is taken to be like the better ones: they
  // may be unhealthy for a moment.
  Truth on_new() const {
    const bool heals = kind_ == Kind::kDriver || kind_ == Kind::kNetwork;
    return on_new_ == Truth::kCannotTell && heals ? Truth::kYes : on_new_;
  }

 private:
  friend class Requirements;
  Kind kind_ = Kind::kConstraint;
  std::string text_{};
  const NodeClasses::Classes* classes_ = nullptr;
  std::vector<Truth> by_class_{};
  const std::vector<bool>* boots_ = nullptr;
  Truth on_new_ = Truth::kCannotTell;
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
