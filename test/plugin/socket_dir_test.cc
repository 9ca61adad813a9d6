// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <sys/stat.h>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/base/status.h"

#include "local_address.h"
#include "support/recording_sink.h"
#include "support/scoped_temp_dir.h"

namespace nomad_harvester::plugin {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class SocketDirTest : public ::testing::Test {
 protected:
  absl::StatusOr<SocketDir> Create(const std::map<std::string, std::string>& variables) {
    return SocketDir::Create(variables, log::Logger(sink_, log::Level::kTrace));
  }
  std::string MakeSubdirectory(const std::string& name) {
    fs::create_directory(root_ + "/" + name);
    return root_ + "/" + name;
  }
  static unsigned Mode(const std::string& path) {
    struct stat info {};
    EXPECT_EQ(lstat(path.c_str(), &info), 0) << path;
    return info.st_mode & 07777U;
  }

  const support::ScopedTempDir temp_;
  const std::string root_ = temp_.path();
  std::shared_ptr<support::RecordingSink> sink_ = std::make_shared<support::RecordingSink>();
};

TEST_F(SocketDirTest, IsPrivateAndGoneAtTheEnd) {
  {
    const absl::StatusOr<SocketDir> directory = Create({{"TMPDIR", root_}});
    ASSERT_TRUE(directory.ok()) << directory.status();
    EXPECT_THAT(directory->paths().directory, StartsWith(root_ + "/"));
    EXPECT_EQ(fs::path(directory->paths().socket).parent_path(), directory->paths().directory);
    EXPECT_EQ(Mode(directory->paths().directory), 0700U);
    std::ofstream(directory->paths().socket).close();
    ASSERT_TRUE(directory->ProtectSocket().ok());
    EXPECT_EQ(Mode(directory->paths().socket), 0600U);
  }
  EXPECT_TRUE(fs::is_empty(root_));
  EXPECT_TRUE(sink_->records().empty()) << sink_->Text();
}

TEST_F(SocketDirTest, TheHostsDirectoryComesBeforeTmpdir) {
  const std::string host = MakeSubdirectory("host");
  const auto directory = Create({{"TMPDIR", root_}, {"PLUGIN_UNIX_SOCKET_DIR", host}});
  ASSERT_TRUE(directory.ok());
  EXPECT_THAT(directory->paths().directory, StartsWith(host + "/"));
}

TEST_F(SocketDirTest, EmptyVariablesCountAsUnset) {
  const auto directory = Create({{"TMPDIR", ""}, {"PLUGIN_UNIX_SOCKET_DIR", ""}});
  ASSERT_TRUE(directory.ok());
  EXPECT_THAT(directory->paths().directory, StartsWith("/tmp/"));
  EXPECT_TRUE(sink_->records().empty());
}

TEST_F(SocketDirTest, TwoProcessesNeverShareOne) {
  const auto first = Create({{"TMPDIR", root_}});
  const auto second = Create({{"TMPDIR", root_}});
  EXPECT_NE(first->paths().directory, second->paths().directory);
}

TEST_F(SocketDirTest, RelativePathsAreMadeAbsolute) {
  const fs::path old = fs::current_path();
  MakeSubdirectory("sub");
  fs::current_path(root_);
  const auto directory = Create({{"TMPDIR", "sub"}});
  fs::current_path(old);
  ASSERT_TRUE(directory.ok());
  EXPECT_THAT(directory->paths().socket, StartsWith(root_ + "/sub/"));
}

TEST_F(SocketDirTest, P1_the_longest_path_that_fits_is_used_and_one_more_byte_is_not) {
  // The address holds 107 bytes and a NUL; "/harvester-XXXXXX/plugin.sock" takes 29.
  const std::size_t longest = 107 - 29;
  ASSERT_LT(root_.size() + 3, longest);
  const std::string fits = MakeSubdirectory(std::string(longest - root_.size() - 1, 'd'));
  const auto directory = Create({{"TMPDIR", fits}});
  ASSERT_TRUE(directory.ok());
  EXPECT_EQ(directory->paths().socket.size(), 107U);
  EXPECT_THAT(directory->paths().socket, StartsWith(fits));
  EXPECT_TRUE(sink_->records().empty());

  const std::string too_long = MakeSubdirectory(std::string(longest - root_.size(), 'e'));
  const auto elsewhere = Create({{"TMPDIR", too_long}});
  ASSERT_TRUE(elsewhere.ok());
  EXPECT_THAT(elsewhere->paths().socket, StartsWith("/tmp/"));
  EXPECT_THAT(sink_->Text(), HasSubstr("TMPDIR"));
}

TEST_F(SocketDirTest, PathsThatWouldBreakTheHandshakeLineAreReplaced) {
  for (const std::string name : {"a|b", "a\nb", "a\x01"}) {
    const auto directory = Create({{"TMPDIR", MakeSubdirectory(name)}});
    ASSERT_TRUE(directory.ok());
    EXPECT_THAT(directory->paths().socket, StartsWith("/tmp/"));
  }
  EXPECT_EQ(sink_->records().size(), 3U);
}

TEST_F(SocketDirTest, P1_a_directory_that_cannot_be_used_is_an_error_with_the_reason) {
  std::ofstream(root_ + "/file") << "x";
  for (const char* variable : {"TMPDIR", "PLUGIN_UNIX_SOCKET_DIR"}) {
    for (const std::string& path : {root_ + "/absent", root_ + "/file"}) {
      const absl::Status status = Create({{variable, path}}).status();
      EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
      EXPECT_THAT(base::Message(status), HasSubstr(path));
      EXPECT_THAT(base::Message(status), HasSubstr(variable));
    }
  }
}

TEST_F(SocketDirTest, ASocketThatCannotBeProtectedIsAnErrorThatNamesIt) {
  const auto directory = Create({{"TMPDIR", root_}});
  fs::remove(directory->paths().directory);
  EXPECT_THAT(base::Message(directory->ProtectSocket()), HasSubstr(directory->paths().socket));
}

TEST_F(SocketDirTest, RemovingTwiceIsHarmless) {
  const auto directory = Create({{"TMPDIR", root_}});
  RemoveSocket(directory->paths());
  RemoveSocket(directory->paths());
  EXPECT_TRUE(fs::is_empty(root_));
}

}  // namespace
}  // namespace nomad_harvester::plugin
