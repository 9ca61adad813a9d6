// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/base/file.h"

#include <filesystem>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "support/scoped_temp_dir.h"
#include "support/status_matchers.h"

namespace nomad_harvester::base {
namespace {

using support::IsOkAndHolds;
using support::ScopedTempDir;
using support::StatusIs;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(ReadFile, Gives_the_whole_content) {
  const ScopedTempDir dir;
  const std::string content = std::string("line\n\0\xff", 7) + std::string(100'000, 'x');
  EXPECT_THAT(ReadFile(dir.WriteFile("a", content)), IsOkAndHolds(content));
  EXPECT_THAT(ReadFile(dir.WriteFile("empty", "")), IsOkAndHolds(""));
}

TEST(ReadFile, Follows_a_symbolic_link_to_a_file) {
  const ScopedTempDir dir;
  dir.WriteFile("target", "content");
  std::filesystem::create_symlink("target", dir.Path("link"));
  EXPECT_THAT(ReadFile(dir.Path("link")), IsOkAndHolds("content"));
}

TEST(ReadFile, Reads_a_file_whose_size_stat_does_not_know) {
  EXPECT_THAT(ReadFile("/proc/self/stat"), IsOkAndHolds(Not(IsEmpty())));
}

TEST(ReadFile, Names_the_path_of_what_is_not_there) {
  const ScopedTempDir dir;
  const std::string path = dir.Path("missing");
  EXPECT_THAT(ReadFile(path), StatusIs(absl::StatusCode::kNotFound, HasSubstr(path)));
  dir.WriteFile("file", "");
  EXPECT_THAT(ReadFile(dir.Path("file/below")), StatusIs(absl::StatusCode::kNotFound));
  std::filesystem::create_symlink("nowhere", dir.Path("dangling"));
  EXPECT_THAT(ReadFile(dir.Path("dangling")), StatusIs(absl::StatusCode::kNotFound));
}

TEST(ReadFile, P2_a_file_has_a_size_limit) {
  const ScopedTempDir dir;
  const std::string path = dir.WriteFile("a", "12345");
  EXPECT_THAT(ReadFile(path, 5), IsOkAndHolds("12345"));
  EXPECT_THAT(ReadFile(path, 4), StatusIs(absl::StatusCode::kResourceExhausted,
                                          AllOf(HasSubstr(path), HasSubstr("4 bytes"))));
  EXPECT_THAT(ReadFile(dir.WriteFile("b", std::string(kMaxConfigFileBytes + 1, 'x'))),
              StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST(ReadFile, P2_a_huge_sparse_file_is_not_read_to_its_end) {
  const ScopedTempDir dir;
  const std::string path = dir.WriteFile("huge", "");
  ASSERT_EQ(truncate(path.c_str(), 1LL << 40), 0);
  EXPECT_THAT(ReadFile(path), StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST(ReadFile, P2_devices_are_refused) {
  for (const char* path : {"/dev/zero", "/dev/null", "/dev/tty", "/dev/urandom"}) {
    if (!std::filesystem::exists(path)) continue;
    EXPECT_THAT(ReadFile(path), StatusIs(absl::StatusCode::kInvalidArgument,
                                         AllOf(HasSubstr(path), HasSubstr("not a regular file"))));
  }
}

TEST(ReadFile, P2_a_fifo_is_refused_and_does_not_block) {
  const ScopedTempDir dir;
  const std::string path = dir.Path("fifo");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_THAT(ReadFile(path), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(path)));
}

TEST(ReadFile, P2_a_directory_and_impossible_paths_are_refused) {
  const ScopedTempDir dir;
  EXPECT_THAT(ReadFile(dir.path()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is a directory")));
  EXPECT_THAT(ReadFile(""), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(ReadFile(std::string("/etc/passwd\0x", 13)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("NUL")));
  EXPECT_THAT(ReadFile("/" + std::string(10'000, 'a')),
              StatusIs(absl::StatusCode::kInvalidArgument));
  std::filesystem::create_symlink("loop", dir.Path("loop"));
  EXPECT_THAT(ReadFile(dir.Path("loop")), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(ReadFile, Tells_that_a_file_may_not_be_read) {
  const ScopedTempDir dir;
  const std::string path = dir.WriteFile("secret", "x");
  ASSERT_EQ(chmod(path.c_str(), 0), 0);
  // Root may read everything, so this switches to another user temporarily.
  const uid_t user = geteuid();
  if (user == 0) {
    ASSERT_EQ(seteuid(65534), 0);
  }
  const auto content = ReadFile(path);
  const auto names = ListDirectory(dir.Path("."));
  if (user == 0) {
    ASSERT_EQ(seteuid(0), 0);
  }
  EXPECT_THAT(content, StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr(path)));
  if (user == 0) {
    EXPECT_THAT(names, StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr(dir.path())));
  }
}

TEST(ReadFile, Leaves_no_descriptor_open) {
  const ScopedTempDir dir;
  const std::string path = dir.WriteFile("a", "x");
  const auto descriptors = [] {
    int count = 0;
    for ([[maybe_unused]] const auto& entry :
         std::filesystem::directory_iterator("/proc/self/fd")) {
      ++count;
    }
    return count;
  };
  const int before = descriptors();
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(ReadFile(path).ok());
    EXPECT_FALSE(ReadFile(path, 0).ok());
    EXPECT_TRUE(ListDirectory(dir.path()).ok());
  }
  EXPECT_EQ(descriptors(), before);
}

TEST(StampFile, Changes_when_a_file_is_replaced_or_rewritten) {
  const ScopedTempDir dir;
  const std::string path = dir.WriteFile("token", "one");
  const auto first = StampFile(path);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(StampFile(path), first);

  dir.WriteFile("token", "longer");
  const auto rewritten = StampFile(path);
  EXPECT_NE(rewritten, first);

  // The rename keeps the size and time of the new file; only the inode differs.
  dir.WriteFile("next", "others");
  std::filesystem::last_write_time(dir.Path("next"), std::filesystem::last_write_time(path));
  std::filesystem::rename(dir.Path("next"), path);
  EXPECT_NE(StampFile(path), rewritten);
}

TEST(StampFile, Changes_when_a_symbolic_link_is_turned_to_another_file) {
  const ScopedTempDir dir;
  dir.WriteFile("v1/token", "x");
  dir.WriteFile("v2/token", "x");
  std::filesystem::create_symlink("v1", dir.Path("data"));
  const auto before = StampFile(dir.Path("data/token"));
  std::filesystem::create_symlink("v2", dir.Path("data.new"));
  std::filesystem::rename(dir.Path("data.new"), dir.Path("data"));
  EXPECT_NE(StampFile(dir.Path("data/token")), before);
}

TEST(StampFile, Is_nothing_for_what_is_not_there) {
  EXPECT_EQ(StampFile("/nonexistent/file"), std::nullopt);
  EXPECT_EQ(StampFile(""), std::nullopt);
}

TEST(ListDirectory, Sorts_the_names_of_regular_files) {
  const ScopedTempDir dir;
  EXPECT_THAT(ListDirectory(dir.path()), IsOkAndHolds(IsEmpty()));
  dir.WriteFile("b.hcl", "");
  dir.WriteFile("a.hcl", "");
  dir.WriteFile(".hidden", "");
  dir.WriteFile("sub/inner.hcl", "");
  ASSERT_EQ(mkfifo(dir.Path("fifo").c_str(), 0600), 0);
  std::filesystem::create_symlink("a.hcl", dir.Path("link.hcl"));
  std::filesystem::create_symlink("nowhere", dir.Path("dangling.hcl"));
  std::filesystem::create_symlink("sub", dir.Path("sublink"));
  EXPECT_THAT(ListDirectory(dir.path()),
              IsOkAndHolds(ElementsAre(".hidden", "a.hcl", "b.hcl", "link.hcl")));
  EXPECT_THAT(ListDirectory(dir.path(), Listed::kAndLinks),
              IsOkAndHolds(
                  ElementsAre(".hidden", "a.hcl", "b.hcl", "dangling.hcl", "link.hcl", "sublink")));
}

TEST(ListDirectory, Names_the_path_of_what_is_not_a_directory) {
  const ScopedTempDir dir;
  const std::string file = dir.WriteFile("file", "");
  EXPECT_THAT(ListDirectory(file), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(file)));
  EXPECT_THAT(ListDirectory(dir.Path("x")),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(dir.Path("x"))));
  EXPECT_THAT(ListDirectory(""), StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace nomad_harvester::base
