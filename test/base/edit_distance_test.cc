// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include "nomad_harvester/base/parse.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace nomad_harvester::base {
namespace {

using testing::Eq;
using testing::Optional;

TEST(EditDistance, Counts_changes_insertions_deletions_and_swaps) {
  EXPECT_EQ(EditDistance("", ""), 0u);
  EXPECT_EQ(EditDistance("", "abc"), 3u);
  EXPECT_EQ(EditDistance("abc", ""), 3u);
  EXPECT_EQ(EditDistance("image", "image"), 0u);
  EXPECT_EQ(EditDistance("image", "imagge"), 1u);
  EXPECT_EQ(EditDistance("image", "imge"), 1u);
  EXPECT_EQ(EditDistance("image", "imade"), 1u);
  EXPECT_EQ(EditDistance("image", "iamge"), 1u);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3u);
  // Optimal string alignment edits no substring twice: the full Damerau distance would be 2.
  EXPECT_EQ(EditDistance("ca", "abc"), 3u);
}

TEST(EditDistance, Is_symmetric_and_bounded_and_zero_only_for_equal_texts) {
  std::mt19937 random(6);
  const auto text = [&random] {
    std::string result;
    for (auto length = random() % 9; length > 0; --length) {
      result += static_cast<char>('a' + random() % 3);
    }
    return result;
  };
  for (int i = 0; i < 5000; ++i) {
    const std::string a = text();
    const std::string b = text();
    const std::size_t distance = EditDistance(a, b);
    ASSERT_EQ(distance, EditDistance(b, a)) << a << " " << b;
    ASSERT_EQ(distance == 0, a == b) << a << " " << b;
    ASSERT_LE(distance, std::max(a.size(), b.size())) << a << " " << b;
    ASSERT_GE(distance, std::max(a.size(), b.size()) - std::min(a.size(), b.size()));
  }
}

TEST(NearestName, Suggests_the_nearest_name) {
  const std::vector<std::string> keys = {"cpu_request", "memory_request", "image", "networks"};
  EXPECT_THAT(NearestName("memroy_request", keys), Optional(Eq("memory_request")));
  EXPECT_THAT(NearestName("network", keys), Optional(Eq("networks")));
  EXPECT_THAT(NearestName("imag", keys), Optional(Eq("image")));
  EXPECT_THAT(NearestName("image", keys), Optional(Eq("image")));
}

TEST(NearestName, Suggests_nothing_if_no_name_is_near) {
  EXPECT_EQ(NearestName("replicas", {"image", "networks"}), std::nullopt);
  EXPECT_EQ(NearestName("x", {}), std::nullopt);
  // Two changes in four letters are too many.
  EXPECT_EQ(NearestName("mage", {"tags"}), std::nullopt);
  // At most two changes, regardless of the length of the name.
  EXPECT_EQ(NearestName("abcdefghijklmnopqrst", {"vwxdefghijklmnopqrst"}), std::nullopt);
  EXPECT_THAT(NearestName("abcdefghijklmnopqrst", {"vwcdefghijklmnopqrst"}),
              Optional(Eq("vwcdefghijklmnopqrst")));
  // One change of two letters leaves half of another word.
  EXPECT_EQ(NearestName("ip", {"id"}), std::nullopt);
  EXPECT_THAT(NearestName("mix", {"max", "min"}), Optional(Eq("max")));
}

TEST(NearestName, The_nearest_wins_and_of_equals_the_first) {
  EXPECT_THAT(NearestName("disk_sizes", {"disk_sized", "disk_size", "disk_siz"}),
              Optional(Eq("disk_sized")));
  EXPECT_THAT(NearestName("labelz", {"table", "labels"}), Optional(Eq("labels")));
}

}  // namespace
}  // namespace nomad_harvester::base
