// SPDX-License-Identifier: Apache-2.0
// Random batch work on two pools, of which the first one has room for two VMs, and whose counts are
// the answers to nodes-needed and overflow. The agent, its targets and the machines are a model.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "nomad_harvester/base/json.h"

#include "demand/two_pools.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace nomad_harvester::demand {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr base::Duration kTick = seconds(10);
constexpr base::Duration kBoot = seconds(80);
constexpr base::Duration kCooldown = minutes(1);
constexpr base::Duration kIdleFor = minutes(10);
constexpr std::size_t kRoomAtHome = 2;

struct Booting {
  std::string name{};
  base::Duration ready_at{};
};

// A pool as the agent and its target keep it.
struct Pool {
  std::string node_class{};
  std::string query{};
  std::size_t least = 0;
  std::size_t most = 100;  // machines that it can have
  std::set<std::string> nodes{};
  std::vector<Booting> booting{};
  base::Duration cools_until{};
  std::vector<std::int64_t> changes{};  // of the count, by how much

  std::size_t size() const { return nodes.size() + booting.size(); }
  int turns() const {
    int turns = 0;
    for (std::size_t i = 1; i < changes.size(); ++i) {
      turns += (changes[i] > 0) != (changes[i - 1] > 0) ? 1 : 0;
    }
    return turns;
  }
};

class Load : public TwoPools {
 protected:
  Load() : TwoPools("7400Mi") {
    home_ = {.node_class = "web",
             .query = "nodes-needed node_class=web node=(cpu=4000,memory=4096,disk=20000)",
             .least = 1,
             .most = kRoomAtHome};
    cloud_ = {.node_class = "cloud",
              .query =
                  "overflow node_class=cloud namespace=nomad pool=web max=10 "
                  "node=(cpu=4000,memory=4096,disk=20000)"};
    PutVm("web-0");
    home_.nodes.insert("web-0");
    Wait(minutes(2));
    begun_ = clock_.Now();
  }

  base::Duration Now() const { return clock_.Now() - begun_; }

  void Tick() {
    Wait(kTick);
    for (Pool* const pool : {&home_, &cloud_}) {
      Boot(*pool);
      Evaluate(*pool);
    }
  }
  void TickUntil(base::Duration at) {
    while (Now() < at) Tick();
  }
  void RunBatch(const std::string& id, int count, base::Duration run_for, std::int64_t cpu = 1000) {
    simulator::JobSpec job = Job(id, count);
    job.type = "batch";
    job.cpu = cpu;
    job.run_for = run_for;
    cluster_.RunJob(job);
    allocations_ += count;
  }
  bool IsBusy(const std::string& node) const {
    const std::string id = base::GetString(cluster_.Node(node), "ID");
    const auto allocations = cluster_.Allocations();
    return std::any_of(allocations.begin(), allocations.end(), [&](const auto& allocation) {
      const std::string status = base::GetString(allocation, "ClientStatus");
      return base::GetString(allocation, "NodeID") == id &&
             (status == "pending" || status == "running");
    });
  }
  // Of all that were ever made.
  int Complete() const {
    const auto allocations = cluster_.Allocations();
    return static_cast<int>(
        std::count_if(allocations.begin(), allocations.end(), [](const auto& allocation) {
          return base::GetString(allocation, "ClientStatus") == "complete";
        }));
  }

  Pool home_{};
  Pool cloud_{};
  int allocations_ = 0;
  std::vector<std::string> wrong_{};  // growth of the second pool beside room in the first

 private:
  void Boot(Pool& pool) {
    std::erase_if(pool.booting, [&](const Booting& machine) {
      if (machine.ready_at > Now()) return false;
      if (&pool == &home_) {
        Join(machine.name);
      } else {
        AddNode(machine.name, pool.node_class);
      }
      pool.nodes.insert(machine.name);
      return true;
    });
  }
  void Evaluate(Pool& pool) {
    if (!pool.booting.empty() || Now() < pool.cools_until) return;
    const auto answer = service_->Query(runtime::Context::Background(clock_), pool.query);
    ASSERT_THAT(answer, support::IsOk());
    const auto wanted = std::max(pool.least, static_cast<std::size_t>(answer->count));
    const auto size = static_cast<std::int64_t>(pool.size());
    while (pool.size() < std::min(wanted, pool.most)) Make(pool);
    if (wanted < pool.size()) RemoveIdle(pool, pool.size() - wanted);
    const std::int64_t change = static_cast<std::int64_t>(pool.size()) - size;
    if (change == 0) return;
    pool.changes.push_back(change);
    pool.cools_until = Now() + (change > 0 ? kBoot : base::Duration()) + kCooldown;
    if (&pool == &cloud_ && change > 0 && home_.size() < kRoomAtHome) {
      wrong_.push_back(base::FormatGoDuration(Now()));
    }
  }
  void Make(Pool& pool) {
    const std::string name = pool.node_class + "-" + std::to_string(++number_);
    if (&pool == &home_) PutVm(name, /*joined=*/false);
    pool.booting.push_back({name, Now() + kBoot});
  }
  void RemoveIdle(Pool& pool, std::size_t count) {
    for (const std::string& node : std::set<std::string>(pool.nodes)) {
      if (count == 0) return;
      if (IsBusy(node)) continue;
      EXPECT_TRUE(cluster_.KillNode(node));
      EXPECT_TRUE(cluster_.PurgeNode(node));
      if (&pool == &home_) RemoveVm(node);
      pool.nodes.erase(node);
      --count;
    }
  }

  base::MonoTime begun_{};
  int number_ = 0;
};

TEST_F(Load, D7_work_spills_within_two_intervals_and_comes_home_when_there_is_room) {
  RunBatch("burst", 20, minutes(5));  // five nodes
  const base::Duration came = Now();
  while (cloud_.size() == 0 && Now() < came + minutes(1)) Tick();
  EXPECT_LE(Now() - came, 2 * kTick);
  EXPECT_EQ(cloud_.size(), 3U);
  EXPECT_EQ(home_.size(), 2U);
  TickUntil(came + minutes(20));
  EXPECT_EQ(Complete(), allocations_);
  EXPECT_EQ(cloud_.size(), 0U);
  RunBatch("next", 8, minutes(5));
  TickUntil(Now() + minutes(10));
  EXPECT_EQ(Complete(), allocations_);
  EXPECT_EQ(cloud_.size(), 0U) << "it ran at home";
  EXPECT_EQ(cloud_.changes, (std::vector<std::int64_t>{3, -3}));
}

class RandomLoad : public Load, public testing::WithParamInterface<std::uint64_t> {};

// One job in 45 s on average, of up to six allocations that take a 16th to a half of a node.
TEST_P(RandomLoad, D7_the_second_pool_grows_only_beside_a_full_first_one_and_does_not_swing) {
  const auto random = support::MakeSeededRandom(GetParam());
  const auto fraction = [&] { return static_cast<double>(random->Next() % 1'000'000) / 1e6; };
  int jobs = 0;
  for (base::Duration at{}; Now() < hours(1);) {
    at += milliseconds(static_cast<std::int64_t>(-45e3 * std::log(1 - fraction())));
    TickUntil(at);
    RunBatch("load-" + std::to_string(++jobs), 1 + static_cast<int>(random->Next() % 6),
             seconds(60 + random->Next() % (14 * 60)), 250 << random->Next() % 4);
  }
  EXPECT_LE(cloud_.turns(), 2 * (hours(1) / kIdleFor));
  TickUntil(Now() + minutes(45));
  EXPECT_EQ(Complete(), allocations_) << "all work has run, and none was stopped";
  EXPECT_EQ(cloud_.size(), 0U);
  EXPECT_EQ(home_.size(), 1U);
  EXPECT_FALSE(cloud_.changes.empty());
  EXPECT_THAT(wrong_, testing::IsEmpty());
  RecordProperty("changes", static_cast<int>(cloud_.changes.size()));
  RecordProperty("turns", cloud_.turns());
  if (HasFailure()) ADD_FAILURE() << log_->Text();
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomLoad, testing::Values(1U));

}  // namespace
}  // namespace nomad_harvester::demand
