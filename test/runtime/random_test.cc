// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/runtime/random.h"

#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "support/seeded_random.h"

namespace nomad_harvester::runtime {
namespace {

using testing::Each;
using testing::Le;

// Always returns the same value.
class Constant final : public Random {
 public:
  explicit Constant(std::uint64_t value) : value_(value) {}
  std::uint64_t Next() override { return value_; }

 private:
  std::uint64_t value_;
};

TEST(SeededRandom, Is_the_same_on_every_platform) {
  // The first outputs of SplitMix64 for the seed 1234567, as published with its reference code.
  const auto random = support::MakeSeededRandom(1234567);
  EXPECT_EQ(random->Next(), 6457827717110365317u);
  EXPECT_EQ(random->Next(), 3203168211198807973u);
  EXPECT_EQ(random->Next(), 9817491932198370423u);
  EXPECT_EQ(random->Next(), 4593380528125082431u);
  EXPECT_EQ(random->Next(), 16408922859458223821u);
}

TEST(SeededRandom, Differs_by_seed) {
  EXPECT_NE(support::MakeSeededRandom(1)->Next(), support::MakeSeededRandom(2)->Next());
}

TEST(SeededRandom, Threads_share_one_sequence_without_repeats) {
  const auto random = support::MakeSeededRandom(1);
  std::vector<std::vector<std::uint64_t>> values(4);
  {
    std::vector<std::jthread> threads;
    for (auto& mine : values) {
      threads.emplace_back([&random, &mine] {
        for (int i = 0; i < 1000; ++i) mine.push_back(random->Next());
      });
    }
  }
  std::set<std::uint64_t> all;
  for (const auto& mine : values) all.insert(mine.begin(), mine.end());
  EXPECT_EQ(all.size(), 4000u);
}

TEST(SystemRandom, Does_not_repeat) {
  const auto random = MakeSystemRandom();
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(random->Next());
  EXPECT_EQ(seen.size(), 1000u);
  EXPECT_NE(MakeSystemRandom()->Next(), random->Next());
}

TEST(Random, A_fraction_is_below_one) {
  EXPECT_EQ(Constant(0).NextFraction(), 0.0);
  EXPECT_LT(Constant(~std::uint64_t{0}).NextFraction(), 1.0);
  EXPECT_EQ(Constant(std::uint64_t{1} << 63).NextFraction(), 0.5);
  const auto random = support::MakeSeededRandom(2);
  double sum = 0;
  for (int i = 0; i < 10000; ++i) sum += random->NextFraction();
  EXPECT_NEAR(sum / 10000, 0.5, 0.02);
}

TEST(Random, A_name_uses_the_whole_safe_alphabet_and_no_other_character) {
  const auto random = support::MakeSeededRandom(3);
  std::map<char, int> counts;
  for (const char c : random->NextName(27'000)) ++counts[c];
  std::string used;
  std::vector<int> deviations;
  for (const auto& [c, count] : counts) {
    used += c;
    deviations.push_back(std::abs(count - 1000));
  }
  EXPECT_EQ(used, "2456789bcdfghjklmnpqrstvwxz");
  EXPECT_THAT(deviations, Each(Le(200)));
  EXPECT_EQ(random->NextName(5).size(), 5u);
  EXPECT_EQ(random->NextName(0), "");
}

}  // namespace
}  // namespace nomad_harvester::runtime
