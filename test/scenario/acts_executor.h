// SPDX-License-Identifier: Apache-2.0
// Parallel acts in one thread, in another order than that of their list.
#ifndef NOMAD_HARVESTER_TEST_SCENARIO_ACTS_EXECUTOR_H_
#define NOMAD_HARVESTER_TEST_SCENARIO_ACTS_EXECUTOR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "nomad_harvester/runtime/random.h"
#include "nomad_harvester/runtime/workers.h"

#include "absl/status/status.h"

namespace nomad_harvester::scenario {

enum class Order {
  kListed,    // one after the other
  kReversed,  // each one stops before its first request until the later ones have ended
  kShuffled,  // at each request, by a seed, another one may begin and run to its end first
};
struct Interleaving {
  Order order = Order::kListed;
  std::uint64_t seed = 1;
};

// An act that is submitted begins at a request of an earlier one and runs within it, as if the
// earlier one's thread were suspended there: the earlier one's observations are older than the
// effects of the later one. For one thread.
class ActsExecutor final : public runtime::Executor {
 public:
  explicit ActsExecutor(const Interleaving& interleaving);

  // Always OK.
  absl::Status Submit(std::function<void()> task) override;
  // The process is about to send a request.
  void Yield();

 private:
  const Order order_;
  const std::unique_ptr<runtime::Random> random_;
  std::vector<std::function<void()>> waiting_;
  int depth_ = 0;
};

}  // namespace nomad_harvester::scenario

#endif  // NOMAD_HARVESTER_TEST_SCENARIO_ACTS_EXECUTOR_H_
