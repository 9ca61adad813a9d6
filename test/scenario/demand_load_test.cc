// SPDX-License-Identifier: Apache-2.0
//
// An hour of random batch jobs on a pool whose count is the answer to nodes-needed, with target and
// APM in the threads of one process; the same hour with the query of examples/policy.hcl; and with
// a second pool, on hosts of its own, which takes what those of the first one cannot.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/demand/service.h"
#include "nomad_harvester/runtime/context.h"
#include "nomad_harvester/simulator/cluster.h"

#include "nlohmann/json.hpp"
#include "process.h"
#include "support/inline_executor.h"
#include "support/recording_sink.h"
#include "support/seeded_random.h"
#include "support/status_matchers.h"
#include "support/threaded_clock.h"
#include "threaded_process.h"
#include "vm_facts.h"

namespace nomad_harvester::scenario {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr std::uint64_t kSeed = 1;
constexpr base::Duration kEvaluatedEvery = seconds(10);
constexpr base::Duration kLoad = hours(1);
constexpr base::Duration kIdleFor = minutes(10);
constexpr base::Duration kBoot = seconds(80);  // until the node is ready

// How a count comes about.
struct Way {
  const char* name;
  std::string query;  // of the APM; empty: that of examples/policy.hcl
  std::string selector;
  base::Duration cooldown;
};
const Way kDemand{"demand", "nodes-needed node_class=web node=(cpu=4000,memory=4096) idle_for=10m",
                  "empty_ignore_system", minutes(1)};
const Way kDemandShort{"demand, idle_for=2m",
                       "nodes-needed node_class=web node=(cpu=4000,memory=4096) idle_for=2m",
                       kDemand.selector, kDemand.cooldown};
const Way kDemandWithHeadroom{"demand, headroom=2x(cpu=1000,memory=1024)",
                              kDemand.query + " headroom=2x(cpu=1000,memory=1024)",
                              kDemand.selector, kDemand.cooldown};
const Way kFormula{"PromQL, cooldown 5m", "", "least_busy", minutes(5)};
const Way kQuickFormula{"PromQL, cooldown 1m", "", "least_busy", minutes(1)};

struct Change {
  base::Duration at{};
  std::int64_t from = 0;
  std::int64_t to = 0;
  bool grows() const { return to > from; }
};

// The hosts of the first pool have room for two VMs, the other ones for all that is needed.
simulator::Options TwoGroupsOfHosts() {
  simulator::Options options;
  options.hosts = {{.name = "home", .zone = "home", .memory = "7400Mi"},
                   {.name = "away", .zone = "away", .memory = "200Gi"}};
  return options;
}

// A pool of the agent: its policy, its query, and the changes of its count.
struct Pool {
  scaling::StringMap policy{};
  std::string query{};
  std::vector<Change> changes{};

  int turns() const {
    int turns = 0;
    for (std::size_t i = 1; i < changes.size(); ++i) {
      turns += changes[i].grows() != changes[i - 1].grows() ? 1 : 0;
    }
    return turns;
  }
};

struct Arrival {
  base::Duration after{};
  simulator::JobSpec job{};
};

// One job in 90 s on average, of up to six allocations, on nodes of that class or of any. One
// allocation takes a 16th to a half of a node, and runs for 1 to 15 minutes.
std::vector<Arrival> RandomLoad(std::uint64_t seed, const std::string& node_class) {
  support::SeededRandom random(seed);
  std::vector<Arrival> load;
  base::Duration at{};
  for (;;) {
    const double wait = -90e3 * std::log(1 - random.NextFraction());
    at += milliseconds(static_cast<std::int64_t>(wait));
    if (at >= kLoad) return load;
    simulator::JobSpec job;
    job.id = "load-" + std::to_string(1000 + load.size());
    job.type = "batch";
    job.node_class = node_class;
    job.count = 1 + static_cast<int>(random.Next() % 6);
    job.cpu = 250 << random.Next() % 4;
    job.memory_mb = 256 << random.Next() % 4;
    job.run_for = seconds(60 + random.Next() % (14 * 60));
    load.push_back({at, std::move(job)});
  }
}

// At one evaluation.
struct Sample {
  base::Duration at{};
  std::int64_t busy = 0;      // nodes with work
  std::int64_t waiting = 0;   // allocations
  base::Duration youngest{};  // when the last of them came
};
// Of one allocation.
struct Wait {
  base::Duration came{};
  base::Duration asked{};  // the next evaluation
  base::Duration placed{};
};

class Hour {
 public:
  Hour(const Way& way, std::uint64_t seed)
      : way_(way), load_(RandomLoad(seed, "web")), cluster_(clock_, *random_, Slow({})) {
    Pool pool{.policy = PolicyFor("web"), .query = way.query};
    pool.policy["node_selector_strategy"] = way.selector;
    pools_.push_back(std::move(pool));
    Start();
  }
  // Of two pools, of which the second one has what the first one cannot, for work that both may
  // have.
  explicit Hour(std::uint64_t seed)
      : way_(kDemand),
        load_(RandomLoad(seed, "")),
        cluster_(clock_, *random_, Slow(TwoGroupsOfHosts())) {
    const std::string size = " node=(cpu=4000,memory=4096)";
    for (const auto& [zone, name, query] :
         {std::tuple{"home", "web", "nodes-needed node_class=web" + size},
          std::tuple{"away", "cloud",
                     "overflow node_class=cloud namespace=nomad pool=web max=10" + size}}) {
      Pool pool{.policy = PolicyFor(name), .query = query};
      pool.policy["availability_zones"] = zone;
      pool.policy["node_selector_strategy"] = kDemand.selector;
      pools_.push_back(std::move(pool));
    }
    Start();
  }

  // Until three quarters of an hour after the last job came.
  void Run() {
    auto next = load_.begin();
    for (base::Duration tick = kEvaluatedEvery; tick <= kLoad + minutes(45);
         tick += kEvaluatedEvery) {
      for (; next != load_.end() && next->after < tick; ++next) {
        SleepUntil(next->after);
        cluster_.RunJob(next->job);
        came_[next->job.id] = Now();
        total_ += next->job.count;
      }
      SleepUntil(tick);
      vm_ticks_ += cluster_.Vms().size();
      for (Pool& pool : pools_) Evaluate(pool);
    }
  }

  const Pool& pool(std::size_t number = 0) const { return pools_[number]; }
  const std::vector<Sample>& samples() const { return samples_; }
  std::int64_t total() const { return total_; }
  std::size_t vms_left() const { return cluster_.Vms().size(); }
  int vms_made() const {
    return cluster_.RequestCount(simulator::System::kHarvester, "create", "virtualmachines");
  }
  double vm_hours() const {
    return static_cast<double>(vm_ticks_) *
           std::chrono::duration<double, hours::period>(kEvaluatedEvery).count();
  }
  std::vector<Wait> Waits() const {
    std::vector<Wait> waits;
    for (const nlohmann::json& allocation : cluster_.Allocations()) {
      const base::Duration came = came_.at(base::GetString(allocation, "JobID"));
      const auto asked = std::find_if(samples_.begin(), samples_.end(),
                                      [&](const Sample& sample) { return sample.at >= came; });
      waits.push_back({.came = came,
                       .asked = asked == samples_.end() ? base::Duration::max() : asked->at,
                       .placed = Since(base::GetInt(allocation, "CreateTime", 0))});
    }
    return waits;
  }
  std::size_t Killed() const {
    std::size_t killed = 0;
    for (const nlohmann::json& allocation : cluster_.Allocations()) {
      killed += base::GetString(allocation, "ClientStatus") == "complete" ? 0 : 1;
    }
    return killed;
  }
  std::string Transcript() const {
    std::string text;
    for (const Pool& pool : pools_) {
      text += pool.query + "\n";
      for (const Change& change : pool.changes) {
        text += base::FormatGoDuration(change.at) + ": " + std::to_string(change.from) + " to " +
                std::to_string(change.to) + "\n";
      }
    }
    return text + log_->Text();
  }

 private:
  void Start() {
    demand::DemandServiceOptions options;
    options.clock = &clock_;
    options.random = support::MakeSeededRandom(2);
    options.logger = log::Logger(log_, log::Level::kInfo);
    options.transports = [this](const auto&) { return cluster_.Transports("apm"); };
    options.executor = &executor_;
    apm_ = demand::MakeDemandService(std::move(options));
    EXPECT_THAT(apm_->SetConfig({{"nomad_address", "http://nomad:4646"},
                                 {"harvester_url", "https://harvester:6443"}}),
                support::IsOk());
  }

  base::Duration Now() const { return clock_.Now() - begun_; }
  base::Duration Since(std::int64_t unix_nanos) const {
    return base::Duration(unix_nanos) - begun_wall_.time_since_epoch();
  }
  // Between what the process does in whole seconds, so that the order is that of the clock.
  void SleepUntil(base::Duration at) {
    if (at > Now()) context_.Sleep(at - Now()).IgnoreError();
  }

  // What the agent does in each interval.
  void Evaluate(Pool& pool) {
    const auto status = process_.Status(pool.policy);
    ASSERT_THAT(status, support::IsOk());
    const auto last = status->meta.find("nomad_autoscaler.last_event");
    const bool cools = last != status->meta.end() &&
                       Now() < Since(base::ParseInt(last->second).value()) + way_.cooldown;
    if (!status->ready || cools) return;
    // Work that no other pool can take waits for the last one.
    if (&pool == &pools_.back()) samples_.push_back(Look());
    const std::int64_t count = pool.query.empty() ? Formula() : Ask(pool.query);
    if (count == status->count) return;
    const absl::Status scaled = process_.Scale(context_, count, pool.policy);
    // A pool before another one makes what fits, and the rest is an error.
    if (&pool == &pools_.back()) {
      EXPECT_THAT(scaled, support::IsOk());
    } else if (!scaled.ok()) {
      return;
    }
    pool.changes.push_back({.at = Now(), .from = status->count, .to = count});
  }

  Sample Look() const {
    Sample sample{.at = Now()};
    std::set<std::string> busy;
    std::map<std::string, std::int64_t> placed;
    for (const nlohmann::json& allocation : cluster_.Allocations()) {
      ++placed[base::GetString(allocation, "JobID")];
      if (IsActive(allocation)) busy.insert(base::GetString(allocation, "NodeID"));
    }
    sample.busy = static_cast<std::int64_t>(busy.size());
    for (const Arrival& each : load_) {
      const auto came = came_.find(each.job.id);
      if (came == came_.end() || placed[each.job.id] == each.job.count) continue;
      sample.waiting += each.job.count - placed[each.job.id];
      sample.youngest = std::max(sample.youngest, came->second);
    }
    return sample;
  }

  // Four allocations on each node, of those that are queued, starting or running.
  std::int64_t Formula() const {
    std::int64_t active = samples_.back().waiting;
    for (const nlohmann::json& allocation : cluster_.Allocations()) {
      active += IsActive(allocation) ? 1 : 0;
    }
    return (active + 3) / 4;
  }
  std::int64_t Ask(const std::string& query) {
    const auto answer = apm_->Query(context_, query);
    EXPECT_THAT(answer, support::IsOk());
    return answer.ok() ? answer->count : 0;
  }

  static simulator::Options Slow(simulator::Options options) {
    options.boot_time = seconds(60);
    options.join_time = seconds(20);
    return options;
  }

  const Way way_;
  const std::vector<Arrival> load_;
  support::ThreadedClock clock_;
  const support::PassingTime passing_{clock_, milliseconds(1)};
  const runtime::Context context_ = runtime::Context::Background(clock_);
  const base::MonoTime begun_ = clock_.Now();
  const base::WallTime begun_wall_ = clock_.WallNow();
  const std::unique_ptr<runtime::Random> random_ = support::MakeSeededRandom(3);
  simulator::Cluster cluster_;
  const std::shared_ptr<support::RecordingSink> log_ = std::make_shared<support::RecordingSink>();
  ThreadedProcess process_{
      clock_,
      {.name = "test_1",
       .transports = [this](const auto&) { return cluster_.Transports("test_1"); },
       .sink = log_,
       .foreground = 1,
       .background = 2}};
  support::InlineExecutor executor_;
  std::unique_ptr<demand::DemandService> apm_;
  std::vector<Pool> pools_;
  std::map<std::string, base::Duration> came_;
  std::int64_t total_ = 0;
  std::size_t vm_ticks_ = 0;
  std::vector<Sample> samples_;
};

std::string Seconds(base::Duration duration) {
  return std::to_string(std::chrono::duration_cast<seconds>(duration).count()) + " s";
}

// Rule D3.
void ExpectLateShrinksAndFewTurns(const Hour& hour) {
  const std::vector<Change>& changes = hour.pool().changes;
  ASSERT_GE(changes.size(), 4U);
  base::Duration shrunk{};
  for (const Change& change : changes) {
    const std::string what = "at " + base::FormatGoDuration(change.at);
    for (const Sample& sample : hour.samples()) {
      if (sample.at > change.at || sample.at < change.at - kIdleFor || change.grows()) continue;
      EXPECT_LE(sample.busy, change.to)
          << what << ": they were needed at " << base::FormatGoDuration(sample.at);
    }
    const auto now = std::find_if(hour.samples().begin(), hour.samples().end(),
                                  [&](const Sample& sample) { return sample.at >= change.at; });
    if (change.grows()) {
      EXPECT_GT(now->waiting, 0) << what;
      EXPECT_GT(now->youngest, shrunk) << what;
    } else {
      EXPECT_EQ(now->waiting, 0) << what;
      shrunk = change.at;
    }
  }
  EXPECT_LE(hour.pool().turns(), 2 * (kLoad / kIdleFor));
}

// Rule D2.
void ExpectWaitsOfOneBoot(const Hour& hour) {
  const std::vector<Wait> waits = hour.Waits();
  EXPECT_EQ(static_cast<std::int64_t>(waits.size()), hour.total()) << "all work has run";
  for (const Wait& wait : waits) {
    EXPECT_LE(wait.placed, wait.asked + kBoot + 2 * kEvaluatedEvery)
        << "came at " << base::FormatGoDuration(wait.came);
  }
  EXPECT_EQ(hour.Killed(), 0U) << "no work was stopped";
  EXPECT_EQ(hour.vms_left(), 0U) << "it ends at zero";
}

class DemandLoad : public testing::TestWithParam<std::uint64_t> {};

TEST_P(DemandLoad, D2_D3_work_waits_for_one_boot_and_a_pool_turns_only_for_new_work) {
  Hour hour(kDemand, GetParam());
  hour.Run();
  ExpectWaitsOfOneBoot(hour);
  ExpectLateShrinksAndFewTurns(hour);
  if (HasFailure()) ADD_FAILURE() << hour.Transcript();
}

INSTANTIATE_TEST_SUITE_P(Seeds, DemandLoad, testing::Values(1U, 2U, 3U));

class OverflowLoad : public testing::TestWithParam<std::uint64_t> {};

TEST_P(OverflowLoad, D7_the_second_pool_takes_what_the_first_one_cannot_and_does_not_swing) {
  Hour hour(GetParam());
  hour.Run();
  const Pool& home = hour.pool(0);
  const Pool& away = hour.pool(1);
  EXPECT_FALSE(away.changes.empty());
  EXPECT_LE(home.turns(), 2 * (kLoad / kIdleFor));
  EXPECT_LE(away.turns(), 2 * (kLoad / kIdleFor));
  ExpectWaitsOfOneBoot(hour);
  RecordProperty("changes", static_cast<int>(away.changes.size()));
  RecordProperty("turns", away.turns());
  if (HasFailure()) ADD_FAILURE() << hour.Transcript();
}

INSTANTIATE_TEST_SUITE_P(Seeds, OverflowLoad, testing::Values(1U));

// docs/demand.md has this table.
TEST(DemandCost, of_the_same_hour_by_each_way) {
  std::printf(
      "[ costs    ] | count by | VMs made | VM-hours | changes (turns) | work waits, on "
      "average | at most | stopped |\n");
  for (const Way& way : {kDemand, kDemandShort, kDemandWithHeadroom, kFormula, kQuickFormula}) {
    Hour hour(way, kSeed);
    hour.Run();
    base::Duration sum{};
    base::Duration most{};
    const std::vector<Wait> waits = hour.Waits();
    for (const Wait& wait : waits) {
      sum += wait.placed - wait.came;
      most = std::max(most, wait.placed - wait.came);
    }
    std::printf("[ costs    ] | %s | %d | %.1f | %zu (%d) | %s | %s | %zu |\n", way.name,
                hour.vms_made(), hour.vm_hours(), hour.pool().changes.size(), hour.pool().turns(),
                Seconds(sum / static_cast<std::int64_t>(waits.size())).c_str(),
                Seconds(most).c_str(), hour.Killed());
  }
}

}  // namespace
}  // namespace nomad_harvester::scenario
