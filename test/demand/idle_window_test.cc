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

TEST(IdleWindow, D3_the_answer_is_the_highest_of_the_time_for_any_counts) {
  for (const base::Duration idle_for : {base::Duration(minutes(10)), base::Duration()}) {
    std::mt19937 random(7);  // NOLINT(cert-msc32-c,cert-msc51-cpp): a test repeats
    IdleWindow window;
    EXPECT_TRUE(window.empty());
    std::vector<std::pair<base::MonoTime, std::int64_t>> all;
    base::MonoTime now(std::chrono::hours(1));
    for (int i = 0; i < 2000; ++i) {
      now += seconds(random() % 60);
      const auto count = static_cast<std::int64_t>(random() % 20);
      all.emplace_back(now, count);
      std::int64_t highest = 0;
      for (const auto& [at, added] : all) {
        if (now - at <= idle_for) highest = std::max(highest, added);
      }
      ASSERT_EQ(window.Add(now, idle_for, count), highest) << "step " << i;
    }
  }
}

}  // namespace
}  // namespace nomad_harvester::demand
