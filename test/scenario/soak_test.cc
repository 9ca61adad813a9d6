// SPDX-License-Identifier: Apache-2.0
//
// A short soak with a fixed seed: `scripts/soak` runs long ones.

#include "soak.h"

#include <cstdio>

#include <gtest/gtest.h>

namespace nomad_harvester::scenario {
namespace {

TEST(Soak, I1_to_I5_hold_under_all_disturbances_within_the_budgets_of_L7) {
  for (const std::uint64_t seed : {1U, 2U}) {
    const SoakResult result = RunSoak({.actions = 100, .seed = seed});
    for (const std::string& problem : result.problems) ADD_FAILURE() << problem;
    ASSERT_TRUE(result.problems.empty()) << "seed " << seed << "\n" << result.transcript;
    EXPECT_GT(result.counts.at("Scale, OK"), 0);
    EXPECT_GT(result.counts.at("faulty request"), 0);
    std::printf("[ visited  ] soak, seed %d: %d requests, %d changes, %s\n", static_cast<int>(seed),
                result.requests, result.checks, base::FormatGoDuration(result.lasted).c_str());
    std::printf("[ costs    ] soak, seed %d: %s\n", static_cast<int>(seed),
                DescribeCosts(result).c_str());
  }
}

}  // namespace
}  // namespace nomad_harvester::scenario
