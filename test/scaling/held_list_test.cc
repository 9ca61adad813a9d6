// SPDX-License-Identifier: Apache-2.0
#include "observation/held_list.h"

#include <memory>

#include <gtest/gtest.h>

namespace nomad_harvester::scaling {
namespace {

using Held = HeldList<int>;

// Reads in full until a proof is asked for; returns how often.
int ReadsUntilProof(Held* held) {
  for (int reads = 0; reads < 100; ++reads) {
    if (held->ToProve() != nullptr) return reads;
    held->Hold(std::make_shared<const int>(reads));
  }
  return -1;
}

TEST(HeldList, HasNothingToProveAtFirst) {
  Held held;
  EXPECT_EQ(held.ToProve(), nullptr);
}

TEST(HeldList, S3_a_list_that_does_not_change_is_proved_each_time) {
  Held held;
  held.Hold(std::make_shared<const int>(1));
  for (int i = 0; i < 100; ++i) {
    const Held::Ptr list = held.ToProve();
    ASSERT_NE(list, nullptr);
    held.Proved(list, true);
  }
}

TEST(HeldList, S3_a_list_that_always_changes_is_rarely_proved) {
  Held held;
  EXPECT_EQ(ReadsUntilProof(&held), 1);
  for (const int reads : {2, 3, 4, 5, 6, 7, 8, 9, 9, 9}) {
    held.Proved(held.ToProve(), false);
    ASSERT_EQ(held.ToProve(), nullptr) << "what is not current is not held";
    EXPECT_EQ(ReadsUntilProof(&held), reads);
  }
  held.Proved(held.ToProve(), true);
  EXPECT_NE(held.ToProve(), nullptr) << "one proof that succeeds ends that";
}

TEST(HeldList, AProofOfAnOlderListSaysNothing) {
  Held held;
  held.Hold(std::make_shared<const int>(1));
  const Held::Ptr older = held.ToProve();
  held.Hold(std::make_shared<const int>(2));
  held.Proved(older, false);
  ASSERT_NE(held.ToProve(), nullptr);
  EXPECT_EQ(*held.ToProve(), 2);
}

}  // namespace
}  // namespace nomad_harvester::scaling
