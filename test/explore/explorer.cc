// SPDX-License-Identifier: Apache-2.0
#include "explorer.h"

#include <deque>
#include <utility>

#include "describe.h"
#include "process.h"
#include "rest.h"
#include "visited.h"

namespace nomad_harvester::explore {
namespace {

constexpr std::size_t kAskEvery = 1024;

class Explorer {
 public:
  Explorer(const Configuration& configuration, const Mutation& mutation, const Limits& limits)
      : configuration_(configuration),
        limits_(limits),
        cache_(configuration, mutation),
        rest_(configuration, cache_) {}

  Result Run() {
    Enqueue(InitialState(configuration_), Visited::kRoot);
    std::uint32_t number = 0;
    std::size_t level_ends = 1;
    while (!frontier_.empty()) {
      if (number == level_ends) {
        ++result_.depth;
        level_ends = visited_.size();
      }
      if (number >= limits_.states || (number % kAskEvery == 0 && limits_.enough())) return Done();
      const State state = frontier_.front();
      frontier_.pop_front();
      if (!Visit(state, number)) return Done();
      ++number;
    }
    result_.complete = true;
    return Done();
  }

 private:
  void Expand(const State& state) {
    successors_.clear();
    for (int p = 0; p < configuration_.processes; ++p) {
      ExpandProcess(configuration_, cache_, state, p, &successors_);
    }
    ExpandLateRequests(configuration_, state, &successors_);
    ExpandWorld(configuration_, state, &successors_);
  }

  // False: a violation.
  bool Visit(const State& state, std::uint32_t number) {
    result_.violation = rest_.Check(state, nullptr);
    if (result_.violation != Violation::kNone) {
      WriteTrace(number, Violation::kNone);
      return false;
    }
    Expand(state);
    result_.transitions += successors_.size();
    for (Successor& successor : successors_) {
      if (successor.violation != Violation::kNone) {
        result_.violation = successor.violation;
        WriteTrace(number, successor.violation);
        return false;
      }
      Enqueue(successor.state, number);
    }
    return true;
  }

  void Enqueue(State state, std::uint32_t parent) {
    Canonicalize(configuration_.vms, &state);
    if (visited_.Insert(HashOf(state), parent)) frontier_.push_back(state);
  }

  Result Done() {
    result_.states = visited_.size();
    result_.decisions = cache_.asked();
    return std::move(result_);
  }

  // Repeats the path and records its events, with consistent VM names.
  void WriteTrace(std::uint32_t entry, Violation last) {
    std::vector<std::string>& trace = result_.trace;
    State state = InitialState(configuration_);
    Labels labels = kOwnNames;
    Canonicalize(configuration_.vms, &state, &labels);
    trace.push_back("At first:\n" + DescribeWorld(state, labels));
    const std::vector<StateHash> path = visited_.PathTo(entry);
    for (std::size_t i = 1; i < path.size(); ++i) {
      Expand(state);
      for (const Successor& successor : successors_) {
        Labels moved = labels;
        State next = successor.state;
        Canonicalize(configuration_.vms, &next, &moved);
        if (HashOf(next) != path[i]) continue;
        trace.push_back(Describe(successor.event, labels));
        state = next;
        labels = moved;
        break;
      }
    }
    trace.push_back("Then:\n" + DescribeWorld(state, labels));
    if (last == Violation::kNone) {
      trace.emplace_back("From here on no hand moves, and Status wakes one process:");
      TraceOutput output{.labels = labels, .lines = trace};
      (void)rest_.Check(state, &output);
      return;
    }
    Expand(state);
    for (const Successor& successor : successors_) {
      if (successor.violation != last) continue;
      trace.push_back(Describe(successor.event, labels));
      return;
    }
  }

  const Configuration& configuration_;
  const Limits& limits_;
  DecisionCache cache_;
  Rest rest_;
  Visited visited_;
  std::deque<State> frontier_;
  std::vector<Successor> successors_;
  Result result_;
};

}  // namespace

Result Explore(const Configuration& configuration, const Mutation& mutation, const Limits& limits) {
  return Explorer(configuration, mutation, limits).Run();
}

}  // namespace nomad_harvester::explore
