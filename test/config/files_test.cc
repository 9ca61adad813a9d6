// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <string>
#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config_test_support.h"

namespace nomad_harvester::config {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class Files : public ::testing::Test {
 protected:
  // Reads `path` as a CA file; returns the problem, or an empty text.
  std::string CaFile(const std::string& path) {
    return Problem(ParsePlugin({{"harvester_ca_cert", path}}));
  }
  std::string TokenFile(const std::string& path) {
    absl::StatusOr<PluginConfig> config = ParsePlugin({{"auth_token_file", path}});
    warnings_ = config.ok() ? config->missing_token_files : std::vector<std::string>{};
    return Problem(config);
  }
  static std::string Problem(const absl::StatusOr<PluginConfig>& config) {
    return config.ok() ? "" : ProblemOf(config);
  }

  support::ScopedTempDir directory_;
  std::vector<std::string> warnings_;
};

TEST_F(Files, a_regular_file_is_accepted) {
  EXPECT_EQ(CaFile(directory_.WriteFile("ca.pem", "x")), "");
}

TEST_F(Files, a_symbolic_link_to_one_is_accepted) {
  std::filesystem::create_symlink(directory_.WriteFile("ca.pem", "x"), directory_.Path("link"));
  EXPECT_EQ(CaFile(directory_.Path("link")), "");
}

TEST_F(Files, one_that_is_missing_is_a_problem_with_its_path) {
  const std::string path = directory_.Path("none.pem");
  EXPECT_EQ(CaFile(path), "harvester_ca_cert: no such file (got \"" + path +
                              "\"); correct the path, as the autoscaler's agent sees it");
}

TEST_F(Files, P2_a_directory_a_device_and_a_fifo_are_not_regular_files) {
  ASSERT_EQ(mkfifo(directory_.Path("fifo").c_str(), 0600), 0);
  for (const std::string& path :
       {directory_.path(), std::string("/dev/zero"), directory_.Path("fifo")}) {
    EXPECT_THAT(CaFile(path), HasSubstr("harvester_ca_cert: is not a regular file")) << path;
    EXPECT_THAT(TokenFile(path), HasSubstr("auth_token_file: is not a regular file")) << path;
  }
}

TEST_F(Files, P2_a_path_that_cannot_be_examined_is_reported_with_the_reason) {
  EXPECT_THAT(CaFile("/" + std::string(5000, 'x')), HasSubstr("cannot be examined: "));
  EXPECT_THAT(TokenFile("/" + std::string(5000, 'x')), HasSubstr("cannot be examined: "));
}

TEST_F(Files, an_empty_path_is_a_problem) {
  EXPECT_THAT(CaFile(""), HasSubstr("harvester_ca_cert: must not be empty"));
  EXPECT_THAT(TokenFile(""), HasSubstr("auth_token_file: must not be empty"));
}

TEST_F(Files, a_path_with_a_nul_is_a_problem) {
  EXPECT_THAT(CaFile(directory_.WriteFile("ca.pem", "x") + std::string("\0x", 2)),
              HasSubstr("NUL"));
}

TEST_F(Files, a_token_file_that_exists_gives_no_warning) {
  EXPECT_EQ(TokenFile(directory_.WriteFile("token", "x")), "");
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(Files, a_token_file_that_is_missing_is_a_warning_only) {
  const std::string path = directory_.Path("token");
  EXPECT_EQ(TokenFile(path), "");
  EXPECT_THAT(warnings_, ElementsAre("auth_token_file: no such file yet: \"" + path + "\""));
}

TEST_F(Files, the_path_of_a_missing_token_file_is_kept) {
  const std::string path = directory_.Path("token");
  EXPECT_EQ(ParsePlugin({{"auth_token_file", path}})->harvester.token_file, path);
  EXPECT_EQ(ParsePlugin({{"nomad_token_file", path}})->nomad.token_file, path);
}

TEST_F(Files, P3_a_token_in_the_key_of_its_file_is_not_shown) {
  EXPECT_EQ(TokenFile("kubeconfig-user-x:hunter2"), "");
  ASSERT_EQ(warnings_.size(), 1U);
  EXPECT_THAT(warnings_.front(), HasSubstr("it may be the token itself"));
  EXPECT_THAT(warnings_.front(), Not(HasSubstr("hunter2")));
  EXPECT_THAT(TokenFile("hunter2" + std::string(5000, 'x')), Not(HasSubstr("hunter2")));
}

TEST_F(Files, relative_paths_are_shown) {
  EXPECT_EQ(TokenFile("./no/such/token"), "");
  EXPECT_THAT(warnings_.front(), HasSubstr("\"./no/such/token\""));
}

TEST_F(Files, a_directory_of_cas_must_be_one) {
  EXPECT_EQ(Problem(ParsePlugin({{"nomad_ca-path", directory_.path()}})), "");
  EXPECT_THAT(Problem(ParsePlugin({{"nomad_ca-path", directory_.WriteFile("file", "x")}})),
              HasSubstr("nomad_ca-path: is not a directory"));
  EXPECT_THAT(Problem(ParsePlugin({{"nomad_ca-path", directory_.Path("none")}})),
              HasSubstr("nomad_ca-path: no such directory"));
}

}  // namespace
}  // namespace nomad_harvester::config
