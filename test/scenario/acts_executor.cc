// SPDX-License-Identifier: Apache-2.0
#include "acts_executor.h"

#include <cstddef>
#include <utility>

#include "support/seeded_random.h"

namespace nomad_harvester::scenario {
namespace {

// Suspended acts hold their place among the process' requests in flight (max_concurrency, 10).
constexpr int kDeepest = 8;

}  // namespace

ActsExecutor::ActsExecutor(const Interleaving& interleaving)
    : order_(interleaving.order), random_(support::MakeSeededRandom(interleaving.seed)) {}

absl::Status ActsExecutor::Submit(std::function<void()> task) {
  if (order_ == Order::kListed) {
    task();
  } else {
    waiting_.push_back(std::move(task));
  }
  return absl::OkStatus();
}

void ActsExecutor::Yield() {
  if (waiting_.empty() || depth_ >= kDeepest) return;
  std::size_t next = 0;
  if (order_ == Order::kShuffled) {
    if (random_->Next() % 2 == 0) return;
    next = random_->Next() % waiting_.size();
  }
  const std::function<void()> task = std::move(waiting_[next]);
  waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(next));
  struct Leaver {
    int& depth;
    ~Leaver() { --depth; }
  } leaver{++depth_};
  task();
}

}  // namespace nomad_harvester::scenario
