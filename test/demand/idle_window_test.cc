// SPDX-License-Identifier: Apache-2.0
#include "idle_window.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace nomad_harvester::demand {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

constexpr base::Duration kIdleFor = minutes(10);

base::MonoTime At(base::Duration time) { return base::MonoTime(std::chrono::hours(1) + time); }

TEST(IdleWindow, ARiseCountsAtOnce) {
  IdleWindow window;
  EXPECT_EQ(window.Add(At(seconds(0)), kIdleFor, 2), 2);
  EXPECT_EQ(window.Add(At(seconds(10)), kIdleFor, 7), 7);
}

TEST(IdleWindow, AFallCountsWhenTheHigherCountIsOld) {
  IdleWindow window;
  window.Add(At(seconds(0)), kIdleFor, 7);
  EXPECT_EQ(window.Add(At(seconds(10)), kIdleFor, 2), 7);
  EXPECT_EQ(window.Add(At(minutes(10)), kIdleFor, 2), 7);
  EXPECT_EQ(window.Add(At(minutes(10) + seconds(1)), kIdleFor, 2), 2);
}

TEST(IdleWindow, ACountThatIsNeededAgainBeginsItsTimeAnew) {
  IdleWindow window;
  window.Add(At(minutes(0)), kIdleFor, 7);
  window.Add(At(minutes(5)), kIdleFor, 2);
  window.Add(At(minutes(9)), kIdleFor, 7);
  EXPECT_EQ(window.Add(At(minutes(18)), kIdleFor, 2), 7);
  EXPECT_EQ(window.Add(At(minutes(20)), kIdleFor, 2), 2);
}

TEST(IdleWindow, WithoutATimeEachCountCounts) {
  IdleWindow window;
  window.Add(At(seconds(0)), {}, 7);
  EXPECT_EQ(window.Add(At(seconds(1)), {}, 2), 2);
}

TEST(IdleWindow, TheAnswerIsTheHighestOfTheTimeForAnyCounts) {
  std::mt19937 random(7);  // NOLINT(cert-msc32-c,cert-msc51-cpp): a test repeats
  IdleWindow window;
  std::vector<std::pair<base::MonoTime, std::int64_t>> all;
  base::Duration time{};
  for (int i = 0; i < 2000; ++i) {
    time += seconds(random() % 60);
    const auto count = static_cast<std::int64_t>(random() % 20);
    all.emplace_back(At(time), count);
    std::int64_t highest = 0;
    for (const auto& [at, added] : all) {
      if (At(time) - at <= kIdleFor) highest = std::max(highest, added);
    }
    ASSERT_EQ(window.Add(At(time), kIdleFor, count), highest) << "step " << i;
  }
}

}  // namespace
}  // namespace nomad_harvester::demand
