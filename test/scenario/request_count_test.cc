// SPDX-License-Identifier: Apache-2.0
//
// How many requests operations take: counted, not timed. Requests that grow with the pool would be
// repeated at every tick of every agent.

#include <cstdio>
#include <map>
#include <regex>
#include <string>

#include <gtest/gtest.h>

#include "harness.h"

namespace nomad_harvester::scenario {
namespace {

// Counts requests by kind since Begin, without renewals of the Lease, which follow the clock.
class Counter {
 public:
  explicit Counter(Harness& h) : h_(h) {
    h_.OnEachRequest([this](const RequestInfo& request) { Count(request); });
  }
  ~Counter() { h_.cluster.SetFaultHook(nullptr); }
  Counter(const Counter&) = delete;
  Counter& operator=(const Counter&) = delete;

  void Begin() {
    counts_.clear();
    before_drain_ = 0;
    drained_ = false;
  }
  int Of(const std::string& kind) const {
    const auto found = counts_.find(kind);
    return found == counts_.end() ? 0 : found->second;
  }
  int Sum(const std::string& verb) const {
    int sum = 0;
    for (const auto& [kind, count] : counts_) {
      if (kind.starts_with(verb + " ")) sum += count;
    }
    return sum;
  }
  int before_first_drain() const { return before_drain_; }
  std::string Text() const {
    std::string text;
    for (const auto& [kind, count] : counts_) {
      text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + kind;
    }
    return text;
  }

 private:
  void Count(const RequestInfo& request) {
    if (request.resource == "leases" && request.body.find("renewTime") != std::string::npos &&
        request.body.find("holderIdentity") == std::string::npos) {
      return;
    }
    // The pages of one list count as one request.
    if (request.target.find("continue=") != std::string::npos) return;
    drained_ = drained_ || request.resource == "drain";
    if (!drained_) ++before_drain_;
    ++counts_[request.verb + " " + request.resource];
  }

  Harness& h_;
  std::map<std::string, int> counts_;
  int before_drain_ = 0;
  bool drained_ = false;
};

TEST(Requests, S3_status_takes_two_regardless_of_the_size_of_the_pool) {
  for (const int size : {1, 20}) {
    Harness h;
    h.Reach(size);
    Counter counter(h);
    for (int tick = 0; tick < 3; ++tick) {
      counter.Begin();
      ASSERT_TRUE(h.Status().ok());
      h.process().RunBackground();
      EXPECT_EQ(counter.Sum("list"), 2) << counter.Text();
      EXPECT_EQ(counter.Sum("get") + counter.Sum("update") + counter.Sum("patch"), 0)
          << counter.Text();
    }
    std::printf("[ requests ] Status of %d VMs: %s\n", size, counter.Text().c_str());
  }
}

// The same removal from pools of different sizes.
std::string ScaleInByFive(int size, int* before_first_drain) {
  Harness h;
  h.Reach(size);
  Counter counter(h);
  const absl::Status scaled = h.Scale(size - 5);
  EXPECT_TRUE(scaled.ok()) << scaled;
  std::printf("[ requests ] 5 of %d removed by least_busy: %d before the first drain; %s\n", size,
              counter.before_first_drain(), counter.Text().c_str());
  *before_first_drain = counter.before_first_drain();
  return counter.Text();
}

TEST(Requests, the_cost_of_a_removal_depends_on_its_victims_not_on_the_size_of_the_pool) {
  int few = 0;
  int many = 0;
  EXPECT_EQ(ScaleInByFive(20, &few), ScaleInByFive(200, &many));
  EXPECT_LE(many, 6 + 2 * 5);
  EXPECT_EQ(few, many);
}

TEST(Requests, a_creation_writes_three_times_for_each_vm_and_the_lease_a_few_times) {
  for (const int count : {1, 10}) {
    Harness h;
    Counter counter(h);
    counter.Begin();
    ASSERT_TRUE(h.Scale(count).ok());
    std::printf("[ requests ] %d created: %s\n", count, counter.Text().c_str());
    EXPECT_EQ(counter.Of("list pods"), 1) << "what the hosts have room for (C2)";
    EXPECT_EQ(counter.Of("create secrets"), count);
    EXPECT_EQ(counter.Of("create virtualmachines"), count);
    EXPECT_EQ(counter.Of("patch secrets"), count);
    // The fourth write, when it joins.
    EXPECT_EQ(counter.Of("patch virtualmachines"), count);
    // Acquired, named, closed and released by the Scale; twice by the background, which looks for
    // leftovers and then records the joins.
    EXPECT_LE(counter.Of("create leases") + counter.Of("patch leases"), 7);
  }
}

TEST(Requests, T3_the_history_of_removed_vms_is_one_write_for_those_that_are_deleted_together) {
  Harness h;
  h.cluster.AllowAll();
  h.Reach(6);
  Counter counter(h);
  ASSERT_TRUE(h.Scale(3).ok());
  EXPECT_EQ(counter.Of("create configmaps"), 1) << counter.Text();
  EXPECT_LE(counter.Of("patch configmaps"), 3) << counter.Text();
  EXPECT_EQ(counter.Of("get configmaps"), 0) << counter.Text();
  EXPECT_EQ(counter.Of("ask selfsubjectrulesreviews"), 1) << "the preflight's";
}

TEST(Requests, T3_without_the_right_the_history_costs_no_request) {
  Harness h;
  h.Reach(2);
  Counter counter(h);
  ASSERT_TRUE(h.Scale(1).ok());
  for (const char* verb : {"get", "create", "patch"}) {
    EXPECT_EQ(counter.Of(std::string(verb) + " configmaps"), 0) << counter.Text();
  }
  EXPECT_EQ(counter.Of("ask selfsubjectrulesreviews"), 1) << "the preflight's";
}

// A text of counts without the one of `what`.
std::string WithoutCount(const std::string& text, const std::string& what) {
  return std::regex_replace(text, std::regex("[0-9]+ " + what + "(, )?"), "");
}

TEST(Requests, C9_watching_drains_reads_the_work_of_each_node_once_a_minute_at_most) {
  std::map<int, std::string> asked;
  for (const int drains : {2, 8}) {
    Harness h;
    h.Reach(drains);
    h.RunJob(drains);
    h.HangDrains();
    ASSERT_TRUE(h.Accept(0).ok());
    ASSERT_TRUE(h.Status().ok());
    Counter counter(h);
    h.clock.After(seconds(120), [&] {
      asked[drains] = WithoutCount(counter.Text(), "list node-allocations");
      EXPECT_LE(counter.Of("list node-allocations"), 2 * drains);
      EXPECT_EQ(counter.Sum("get"), counter.Of("get leases")) << counter.Text();
      h.HangDrains(false);
      for (const std::string& vm : h.VmNames()) h.cluster.CancelDrain(h.NodeOf(vm), true);
    });
    h.process().RunBackground();
    std::printf("[ requests ] %d drains watched for 2 min: %s\n", drains, asked[drains].c_str());
  }
  EXPECT_EQ(asked[2], asked[8]);
}

}  // namespace
}  // namespace nomad_harvester::scenario
