// SPDX-License-Identifier: Apache-2.0
#include "version.h"

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace nomad_harvester::cli {
namespace {

using testing::ElementsAre;
using testing::IsSupersetOf;
using testing::MatchesRegex;

std::vector<std::string> Lines() {
  std::vector<std::string> lines = absl::StrSplit(VersionText(), '\n');
  EXPECT_EQ(lines.back(), "") << "the text ends with a line feed";
  lines.pop_back();
  return lines;
}

TEST(VersionText, begins_with_version_commit_and_kind_of_the_libraries) {
  const std::vector<std::string> lines = Lines();
  ASSERT_GT(lines.size(), 3U);
  EXPECT_THAT(
      std::vector(lines.begin(), lines.begin() + 3),
      ElementsAre(
          MatchesRegex("harvester [0-9]+\\.[0-9]+\\.[0-9]+(\\+git\\.[0-9a-f]{7}|\\+unknown)?"),
          MatchesRegex("commit ([0-9a-f]{12}|unknown)"),
          MatchesRegex("libraries (static|shared)")));
}

// Without the tag the build is newer than the release, and says of which commit it is.
TEST(VersionText, of_a_build_that_is_not_the_release_names_its_commit) {
  if (Version().find('+') == std::string::npos) GTEST_SKIP() << "this is the release";
  const std::string commit = Commit() == "unknown" ? "unknown" : "git." + Commit().substr(0, 7);
  EXPECT_EQ(Version().substr(Version().find('+') + 1), commit);
}

// scripts/check-updates reads these lines.
TEST(VersionText, names_each_component_with_its_debian_revision_and_package) {
  const std::vector<std::string> lines = Lines();
  std::map<std::string, std::string> source_of;
  for (std::size_t i = 3; i < lines.size(); ++i) {
    EXPECT_THAT(lines[i], MatchesRegex("[a-z0-9.+-]+ ([0-9]+:)?[0-9][A-Za-z0-9.+~]*"
                                       "(-[A-Za-z0-9.+~-]+)? [a-z0-9.+-]+"));
    const std::vector<std::string> words = absl::StrSplit(lines[i], ' ');
    ASSERT_EQ(words.size(), 3U) << lines[i];
    source_of[words[2]] = words[0];
  }
  EXPECT_THAT(source_of, IsSupersetOf(std::map<std::string, std::string>{
                             {"libgrpc++-dev", "grpc"},
                             {"libprotobuf-dev", "protobuf"},
                             {"libcurl4-openssl-dev", "curl"},
                             {"libssl-dev", "openssl"},
                             {"libc6-dev", "glibc"},
                             {"nlohmann-json3-dev", "nlohmann-json3"},
                             {"prometheus-cpp-dev", "prometheus-cpp"},
                         }));
}

}  // namespace
}  // namespace nomad_harvester::cli
