// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <string>

#include "nomad_harvester/http/decorators.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "support/scoped_temp_dir.h"
#include "support/status_matchers.h"

namespace nomad_harvester::http {
namespace {

using absl::StatusCode;
using base::Secret;
using support::IsOkAndHolds;
using support::StatusIs;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(StaticToken, stays_what_it_is) {
  const auto source = MakeStaticToken(Secret("abc"));
  EXPECT_THAT(source->Token(), IsOkAndHolds(Secret("abc")));
  source->Refresh();
  EXPECT_THAT(source->Token(), IsOkAndHolds(Secret("abc")));
}

class FileToken : public testing::Test {
 protected:
  support::ScopedTempDir dir_;
  const std::string path_ = dir_.Path("token");
  const std::shared_ptr<TokenSource> source_ = MakeFileToken(path_);
};

TEST_F(FileToken, is_read_without_the_white_space_around_it) {
  dir_.WriteFile("token", "  s.abc\n");
  EXPECT_THAT(source_->Token(), IsOkAndHolds(Secret("s.abc")));
}

TEST_F(FileToken, missing_from_the_start_is_an_error_with_the_path) {
  EXPECT_THAT(source_->Token(), StatusIs(StatusCode::kFailedPrecondition, HasSubstr(path_)));
  source_->Refresh();
}

TEST_F(FileToken, that_appears_later_is_found) {
  EXPECT_THAT(source_->Token(), StatusIs(StatusCode::kFailedPrecondition));
  dir_.WriteFile("token", "late");
  EXPECT_THAT(source_->Token(), IsOkAndHolds(Secret("late")));
}

TEST_F(FileToken, empty_from_the_start_is_an_error) {
  dir_.WriteFile("token", " \n");
  EXPECT_THAT(source_->Token(), StatusIs(StatusCode::kFailedPrecondition,
                                         AllOf(HasSubstr(path_), HasSubstr("empty"))));
}

TEST_F(FileToken, rewritten_is_read_again) {
  dir_.WriteFile("token", "one");
  EXPECT_THAT(source_->Token(), IsOkAndHolds(Secret("one")));
  dir_.WriteFile("token", "another");
  EXPECT_THAT(source_->Token(), IsOkAndHolds(Secret("another")));
}

TEST_F(FileToken, P3_the_one_before_the_last_is_still_recognised_in_a_late_reply) {
  for (const char* token : {"first-token", "second-token", "third-token"}) {
    dir_.WriteFile("token", token);
    source_->Refresh();
  }
  EXPECT_EQ(base::WithoutSecrets("second-token third-token"), "REDACTED REDACTED");
  EXPECT_EQ(base::WithoutSecrets("first-token"), "first-token");
}

TEST_F(FileToken, replaced_by_a_rename_is_read_again) {
  dir_.WriteFile("token", "one");
  EXPECT_THAT(source_->Token(), IsOkAndHolds(Secret("one")));
  std::filesystem::rename(dir_.WriteFile("token.new", "two"), path_);
  EXPECT_THAT(source_->Token(), IsOkAndHolds(Secret("two")));
}

TEST_F(FileToken, behind_a_symbolic_link_that_is_turned_is_read_again) {
  // As the kubelet replaces projected tokens.
  dir_.WriteFile("v1/token", "one");
  dir_.WriteFile("v2/token", "two");
  std::filesystem::create_symlink(dir_.Path("v1"), dir_.Path("data"));
  const auto source = MakeFileToken(dir_.Path("data/token"));
  EXPECT_THAT(source->Token(), IsOkAndHolds(Secret("one")));
  std::filesystem::create_symlink(dir_.Path("v2"), dir_.Path("data.new"));
  std::filesystem::rename(dir_.Path("data.new"), dir_.Path("data"));
  EXPECT_THAT(source->Token(), IsOkAndHolds(Secret("two")));
}

TEST_F(FileToken, the_last_one_is_kept_while_the_file_is_missing_or_empty) {
  dir_.WriteFile("token", "one");
  EXPECT_THAT(source_->Token(), IsOkAndHolds(Secret("one")));
  std::filesystem::remove(path_);
  EXPECT_THAT(source_->Token(), IsOkAndHolds(Secret("one")));
  source_->Refresh();
  dir_.WriteFile("token", "");
  EXPECT_THAT(source_->Token(), IsOkAndHolds(Secret("one")));
  dir_.WriteFile("token", "two");
  EXPECT_THAT(source_->Token(), IsOkAndHolds(Secret("two")));
}

TEST_F(FileToken, Refresh_reads_even_if_the_file_looks_the_same) {
  dir_.WriteFile("token", "one");
  const auto time = std::filesystem::last_write_time(path_);
  EXPECT_THAT(source_->Token(), IsOkAndHolds(Secret("one")));
  dir_.WriteFile("token", "two");  // the same size, in the same file
  std::filesystem::last_write_time(path_, time);
  EXPECT_THAT(source_->Token(), IsOkAndHolds(Secret("one")));
  source_->Refresh();
  EXPECT_THAT(source_->Token(), IsOkAndHolds(Secret("two")));
}

TEST_F(FileToken, that_does_not_fit_a_header_is_rejected_without_being_quoted) {
  for (const std::string content :
       {"first\r\nX-Injected: secret", "two words-secret", "umlaut-s\xc3\xb6-secret"}) {
    dir_.WriteFile("token", content);
    EXPECT_THAT(source_->Token(), StatusIs(StatusCode::kFailedPrecondition,
                                           AllOf(HasSubstr(path_), Not(HasSubstr("secret")))));
  }
}

TEST_F(FileToken, P2_that_is_huge_or_a_device_is_an_error) {
  dir_.WriteFile("token", std::string(65 * 1024, 'a'));
  EXPECT_THAT(source_->Token(), StatusIs(StatusCode::kFailedPrecondition));
  EXPECT_THAT(MakeFileToken("/dev/zero")->Token(), StatusIs(StatusCode::kFailedPrecondition));
  EXPECT_THAT(MakeFileToken(dir_.path())->Token(), StatusIs(StatusCode::kFailedPrecondition));
}

}  // namespace
}  // namespace nomad_harvester::http
