// SPDX-License-Identifier: Apache-2.0
#include "memory.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <malloc.h>
#include <memory>
#include <new>
#include <set>
#include <string>

#include "nomad_harvester/log/sinks.h"
#include "nomad_harvester/runtime/random.h"
#include "nomad_harvester/simulator/cluster.h"

#include "chaos.h"
#include "nlohmann/json.hpp"
#include "process.h"
#include "support/fake_clock.h"
#include "support/seeded_random.h"

namespace {

std::atomic<std::int64_t> live_bytes = 0;

}  // namespace

// The other forms of new and delete, alignment aside, call these. GCC compares what it inlines.
[[gnu::noinline]] void* operator new(std::size_t size) {
  void* const memory = std::malloc(std::max<std::size_t>(size, 1));
  if (memory == nullptr) throw std::bad_alloc();
  live_bytes += static_cast<std::int64_t>(malloc_usable_size(memory));
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  live_bytes -= static_cast<std::int64_t>(malloc_usable_size(memory));
  std::free(memory);
}
void operator delete(void* memory, std::size_t /*size*/) noexcept { operator delete(memory); }

namespace nomad_harvester::scenario {
namespace {

using simulator::Fault;
using simulator::RequestInfo;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr base::Duration kStatusInterval = seconds(30);
constexpr double kFaultyPercent = 2;
constexpr std::size_t kMostVms = 4;
constexpr std::int64_t kVmsAtRest = 2;
// A pool that cannot be scaled for longer is a defect that other tests find.
constexpr int kMaxTicks = 2000;

class Discarding final : public log::Sink {
 public:
  void Write(const log::Record& /*record*/) override {}
};

// One pool and its agent.
class Churn {
 public:
  explicit Churn(std::uint64_t seed)
      : random_(support::MakeSeededRandom(seed)),
        dice_(*random_),
        cluster_(clock_, *random_),
        process_(std::make_unique<Process>(
            clock_, cluster_, 1, std::make_shared<Discarding>(),
            // Asked before each scale-in: its failures have texts of their own.
            ProcessOptions{.environment = {{"NOMAD_ALLOC_ID", "f0b1c9d4-another-cluster"}}})) {
    policy_["join_timeout"] = "2m";
    policy_["replace_unhealthy_after"] = "3m";
    cluster_.SetFaultHook([this](const RequestInfo& request) {
      names_.insert(request.resource == "virtualmachines" ? request.name : "");
      return disturbed_ && dice_.Percent(kFaultyPercent) ? MakeFault(dice_, clock_, request)
                                                         : Fault::None();
    });
  }

  void Act() {
    Disturb();
    auto count = static_cast<std::int64_t>(dice_.Below(kMostVms + 1));
    if (count == last_) count = (count + 1) % static_cast<std::int64_t>(kMostVms + 1);
    Reach(count, 1);
    last_ = count;
  }
  MemoryUse ComeToRest() {
    disturbed_ = false;
    cluster_.FailStart(0, "", "");
    cluster_.NeverJoin(0);
    // The last one looks at what the operators have cleaned up.
    for (const std::int64_t count : {kVmsAtRest, kVmsAtRest + 1, kVmsAtRest}) {
      RemoveLostNodes();
      Reach(count, kMaxTicks);
    }
    // Longer than the wait between two rounds of the background.
    for (base::Duration rest{}; rest < minutes(30); rest += kStatusInterval) Tick();
    MemoryUse use{.requests = cluster_.RequestCount(), .vms = static_cast<int>(names_.size())};
    const std::int64_t before = live_bytes;
    process_.reset();
    use.held = before - live_bytes;
    return use;
  }

 private:
  bool Tick() {
    const auto status = process_->Status(policy_);
    process_->RunBackground();
    clock_.Advance(kStatusInterval);
    ready_ = status.ok() && status->ready;
    return ready_ && status->count == at_;
  }
  // Calls Scale at most so often.
  void Reach(std::int64_t count, int scales) {
    at_ = count;
    for (int tick = 0; tick < kMaxTicks && scales > 0; ++tick) {
      if (Tick()) return;
      if (!ready_) continue;
      process_->Scale(count, policy_).IgnoreError();
      --scales;
    }
  }
  void Disturb() {
    RemoveLostNodes();
    if (dice_.Percent(2)) cluster_.FailStart(1, "ErrorUnschedulable", "no host has room");
    if (dice_.Percent(1)) cluster_.NeverJoin(1);
    if (dice_.Percent(2)) process_->Configure();
    if (!dice_.Percent(5)) return;
    for (const auto& node : cluster_.Nodes()) {
      cluster_.ReviveNodeUnderNewId(node["ID"].get<std::string>());
      break;
    }
  }

  // Nomad would keep them for a day: what there is to know about its nodes is no growth of ours.
  void RemoveLostNodes() {
    for (const auto& node : cluster_.Nodes()) {
      if (node["Status"] == "down") cluster_.PurgeNode(node["ID"].get<std::string>());
    }
  }

  support::FakeClock clock_;
  const std::unique_ptr<runtime::Random> random_;
  Dice dice_;
  simulator::Cluster cluster_;
  std::unique_ptr<Process> process_;
  scaling::StringMap policy_ = PolicyFor("web");
  std::set<std::string> names_;
  bool disturbed_ = true;
  bool ready_ = false;
  std::int64_t at_ = 0;
  std::int64_t last_ = 0;
};

}  // namespace

MemoryUse UseMemory(int actions, std::uint64_t seed) {
  const std::int64_t before = live_bytes;
  MemoryUse use;
  {
    Churn churn(seed);
    for (int i = 0; i < actions; ++i) churn.Act();
    use = churn.ComeToRest();
  }
  use.leaked = live_bytes - before;
  return use;
}

}  // namespace nomad_harvester::scenario
