// SPDX-License-Identifier: Apache-2.0
#include "distinct.h"

#include <algorithm>

namespace nomad_harvester::demand {

DistinctCounts::DistinctCounts(const Group& group, std::vector<OfJob>* of_job,
                               const NewNode& new_node)
    : group_(group), of_job_(of_job), new_node_(new_node), used_(group.distinct.size()) {
  for (std::size_t i = 0; i < used_.size(); ++i) {
    const Distinct& distinct = group.distinct[i];
    for (const OfJob& there : *of_job_) {
      if (!distinct.whole_job && there.group != group.name) continue;
      if (there.leaves && distinct.property != kEveryHost) continue;
      const auto value = ValueAt(there.spot, distinct.property);
      if (value.has_value()) used_[i][*value] += there.count;
    }
  }
}

std::int64_t DistinctCounts::Limit(const Spot& spot, std::int64_t wanted) {
  for (std::size_t i = 0; i < used_.size() && wanted > 0; ++i) {
    const Distinct& distinct = group_.distinct[i];
    const auto value = ValueAt(spot, distinct.property);
    const std::int64_t used = value.has_value() ? used_[i][*value] : distinct.limit;
    wanted = std::clamp<std::int64_t>(distinct.limit - used, 0, wanted);
    if (wanted > 0 || spot.node != nullptr) continue;
    cannot_tell_ = !value && new_node_.Resolve(distinct.property).kind == Value::Kind::kUnknown;
    why_ = "distinct_property " + distinct.property + ": ";
    why_ += cannot_tell_ ? "the value of a new node cannot be told"
            : value      ? "a new node has a value that is used up"
                         : "a new node lacks it";
  }
  return wanted;
}

void DistinctCounts::Add(const Spot& spot, std::int64_t count) {
  if (of_job_ == nullptr) return;
  of_job_->push_back({spot, group_.name, count});
  for (std::size_t i = 0; i < used_.size(); ++i) {
    const auto value = ValueAt(spot, group_.distinct[i].property);
    if (value.has_value()) used_[i][*value] += count;
  }
}

std::optional<std::string> DistinctCounts::ValueAt(const Spot& spot, const std::string& property) {
  const Value value =
      spot.node != nullptr ? Resolve(property, *spot.node->node) : new_node_.Resolve(property);
  if (value.kind == Value::Kind::kText) return std::string(value.text);
  // No value of Nomad begins with a line break.
  if (value.kind == Value::Kind::kOwn) return "\n" + std::to_string(spot.number);
  return std::nullopt;
}

}  // namespace nomad_harvester::demand
