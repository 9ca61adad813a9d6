// SPDX-License-Identifier: Apache-2.0
// Tests of the test helpers.
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <sys/stat.h>
#include <vector>

#include "nomad_harvester/base/file.h"
#include "nomad_harvester/base/status.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "support/manual_executor.h"
#include "support/scoped_environment.h"
#include "support/scoped_temp_dir.h"
#include "support/status_matchers.h"

namespace nomad_harvester::support {
namespace {

using testing::ElementsAre;
using testing::Gt;
using testing::HasSubstr;
using testing::Not;
using testing::Pointee;
using testing::StringMatchResultListener;

template <typename M, typename T>
std::string Explain(const M& matcher, const T& value) {
  StringMatchResultListener listener;
  testing::ExplainMatchResult(matcher, value, &listener);
  return listener.str();
}

TEST(StatusMatchers, IsOk_takes_a_status_and_a_statusor) {
  EXPECT_THAT(absl::OkStatus(), IsOk());
  EXPECT_THAT(absl::StatusOr<int>(1), IsOk());
  EXPECT_THAT(base::NotFound("x"), Not(IsOk()));
  EXPECT_THAT(absl::StatusOr<int>(base::NotFound("x")), Not(IsOk()));
  EXPECT_THAT(Explain(IsOk(), base::NotFound("gone")), HasSubstr("gone"));
}

TEST(StatusMatchers, IsOkAndHolds_takes_a_value_or_a_matcher) {
  EXPECT_THAT(absl::StatusOr<int>(1), IsOkAndHolds(1));
  EXPECT_THAT(absl::StatusOr<int>(1), IsOkAndHolds(Gt(0)));
  EXPECT_THAT(absl::StatusOr<int>(1), Not(IsOkAndHolds(2)));
  EXPECT_THAT(absl::StatusOr<int>(base::NotFound("x")), Not(IsOkAndHolds(1)));
  EXPECT_THAT(absl::StatusOr<std::unique_ptr<int>>(std::make_unique<int>(3)),
              IsOkAndHolds(Pointee(3)));
  EXPECT_THAT(absl::StatusOr<std::string>("text"), IsOkAndHolds("text"));
  EXPECT_THAT(Explain(IsOkAndHolds(1), absl::StatusOr<int>(base::NotFound("gone"))),
              HasSubstr("gone"));
}

TEST(StatusMatchers, StatusIs_looks_at_code_and_message) {
  EXPECT_THAT(base::NotFound("VM a"), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(base::NotFound("VM a"), StatusIs(absl::StatusCode::kNotFound, "VM a"));
  EXPECT_THAT(base::NotFound("VM a"), StatusIs(absl::StatusCode::kNotFound, HasSubstr("a")));
  EXPECT_THAT(base::NotFound("VM a"), Not(StatusIs(absl::StatusCode::kInternal)));
  EXPECT_THAT(base::NotFound("VM a"), Not(StatusIs(absl::StatusCode::kNotFound, "VM b")));
  EXPECT_THAT(absl::StatusOr<int>(base::NotFound("x")), StatusIs(absl::StatusCode::kNotFound));
}

TEST(ScopedTempDir, Is_private_and_removed_with_its_content) {
  std::string path;
  {
    const ScopedTempDir dir;
    path = dir.path();
    struct stat info {};
    ASSERT_EQ(stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, 0700u);
    EXPECT_EQ(dir.WriteFile("a/b", "1"), path + "/a/b");
    EXPECT_THAT(base::ReadFile(dir.WriteFile("a/b", "two")), IsOkAndHolds("two"));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(ScopedTempDir, Each_is_another_and_lies_below_tmpdir) {
  const ScopedTempDir parent;
  const ScopedEnvironment environment("TMPDIR", parent.path());
  const ScopedTempDir one;
  const ScopedTempDir two;
  EXPECT_NE(one.path(), two.path());
  EXPECT_THAT(one.path(), testing::StartsWith(parent.path() + "/"));
}

TEST(ScopedEnvironment, Puts_everything_back) {
  setenv("NH_TEST_KEPT", "before", 1);
  unsetenv("NH_TEST_NEW");
  {
    ScopedEnvironment environment("NH_TEST_KEPT", "during");
    environment.Set("NH_TEST_KEPT", "later");
    environment.Set("NH_TEST_NEW", "new");
    EXPECT_STREQ(std::getenv("NH_TEST_KEPT"), "later");
    EXPECT_STREQ(std::getenv("NH_TEST_NEW"), "new");
    environment.Unset("NH_TEST_KEPT");
    EXPECT_EQ(std::getenv("NH_TEST_KEPT"), nullptr);
  }
  EXPECT_STREQ(std::getenv("NH_TEST_KEPT"), "before");
  EXPECT_EQ(std::getenv("NH_TEST_NEW"), nullptr);
  unsetenv("NH_TEST_KEPT");
}

TEST(ManualExecutor, Runs_tasks_in_order_and_only_when_told) {
  ManualExecutor executor;
  std::vector<int> ran;
  EXPECT_FALSE(executor.RunOne());
  for (int i = 1; i <= 2; ++i) {
    EXPECT_THAT(executor.Submit([&ran, i] { ran.push_back(i); }), IsOk());
  }
  EXPECT_THAT(executor.Submit([&] {
    ran.push_back(3);
    EXPECT_THAT(executor.Submit([&ran] { ran.push_back(4); }), IsOk());
  }),
              IsOk());
  EXPECT_EQ(executor.pending(), 3u);
  EXPECT_TRUE(executor.RunOne());
  EXPECT_THAT(ran, ElementsAre(1));
  EXPECT_EQ(executor.RunAll(), 3u);
  EXPECT_THAT(ran, ElementsAre(1, 2, 3, 4));
}

TEST(ManualExecutor, Can_be_full) {
  ManualExecutor executor;
  executor.set_refusal(absl::ResourceExhaustedError("full"));
  EXPECT_THAT(executor.Submit([] {}), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(executor.pending(), 0u);
  executor.set_refusal(absl::OkStatus());
  EXPECT_THAT(executor.Submit([] {}), IsOk());
  EXPECT_EQ(executor.pending(), 1u);
}

}  // namespace
}  // namespace nomad_harvester::support
