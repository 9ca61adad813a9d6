// SPDX-License-Identifier: Apache-2.0
#include "version.h"

#include <map>
#include <sstream>
#include <string>

#include <curl/curl.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace nomad_harvester::cli {
namespace {

using testing::Key;
using testing::MatchesRegex;
using testing::UnorderedElementsAre;

// One line each: a name, a space, a version.
std::map<std::string, std::string> Lines() {
  std::istringstream text(VersionText());
  std::map<std::string, std::string> lines;
  for (std::string line; std::getline(text, line);) {
    const std::size_t space = line.find(' ');
    EXPECT_NE(space, std::string::npos) << line;
    lines[line.substr(0, space)] = line.substr(space + 1);
  }
  return lines;
}

TEST(VersionText, names_version_commit_and_libraries) {
  EXPECT_THAT(Lines(), UnorderedElementsAre(Key("harvester"), Key("commit"), Key("grpc"),
                                            Key("protobuf"), Key("libcurl"), Key("nlohmann_json")));
  EXPECT_EQ(VersionText().back(), '\n');
}

TEST(VersionText, versions_are_numbers) {
  const auto lines = Lines();
  for (const char* name : {"harvester", "grpc", "protobuf", "nlohmann_json"}) {
    EXPECT_THAT(lines.at(name), MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+")) << name;
  }
  EXPECT_THAT(lines.at("commit"), MatchesRegex("[0-9a-f]{12}|unknown"));
}

// The linked version, even if the headers were of another one.
TEST(VersionText, libcurls_version_is_the_linked_one) {
  EXPECT_EQ(Lines().at("libcurl"), curl_version());
}

}  // namespace
}  // namespace nomad_harvester::cli
