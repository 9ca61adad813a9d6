// SPDX-License-Identifier: Apache-2.0
//
// `scripts/soak --memory` does the same for 10,000 actions.

#include "memory.h"

#include <cstdio>

#include <gtest/gtest.h>

namespace nomad_harvester::scenario {
namespace {

TEST(Memory, I7_after_many_actions_is_that_after_a_few) {
  UseMemory(1, 1);  // what a first use keeps for ever
  const MemoryUse few = UseMemory(100, 1);
  const MemoryUse many = UseMemory(500, 1);
  EXPECT_GT(few.held, 0);
  EXPECT_GT(many.vms, 3 * few.vms) << "names come and go";
  EXPECT_LE(many.held, few.held + kMemoryGrowth);
  EXPECT_LE(many.leaked, few.leaked + kMemoryGrowth);
  std::printf("[ costs    ] a process holds %lld bytes after 100 actions, %lld after 500\n",
              static_cast<long long>(few.held), static_cast<long long>(many.held));
}

}  // namespace
}  // namespace nomad_harvester::scenario
