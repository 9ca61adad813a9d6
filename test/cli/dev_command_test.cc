// SPDX-License-Identifier: Apache-2.0
#include "dev_command.h"

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "gtest/gtest.h"

namespace nomad_harvester::cli {
namespace {

struct Parsed {
  DevArguments arguments;
  bool is_dev = false;
};

Parsed Parse(const std::vector<std::string>& arguments) {
  CLI::App app;
  Parsed parsed;
  const CLI::App* command = AddDevCommand(app, &parsed.arguments);
  app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  parsed.is_dev = command->parsed();
  return parsed;
}

TEST(DevCommand, listens_on_any_port_of_the_loopback_by_default) {
  const Parsed parsed = Parse({"dev"});
  EXPECT_TRUE(parsed.is_dev);
  EXPECT_EQ(parsed.arguments.listen, "127.0.0.1:0");
  EXPECT_FALSE(parsed.arguments.simulate);
}

TEST(DevCommand, takes_an_address_in_either_spelling) {
  EXPECT_EQ(Parse({"dev", "--listen", "unix:/run/dev.sock"}).arguments.listen,
            "unix:/run/dev.sock");
  EXPECT_EQ(Parse({"dev", "--listen=127.0.0.1:4711"}).arguments.listen, "127.0.0.1:4711");
}

TEST(DevCommand, simulates_when_asked_to) {
  EXPECT_TRUE(Parse({"dev", "--simulate"}).arguments.simulate);
  EXPECT_TRUE(Parse({"dev", "--listen", "x", "--simulate"}).arguments.simulate);
}

TEST(DevCommand, is_not_another_command) {
  EXPECT_FALSE(Parse({}).is_dev);
  EXPECT_THROW(Parse({"devel"}), CLI::ParseError);
  EXPECT_THROW(Parse({"dev", "--listen", "a", "--listen", "b"}), CLI::ParseError);
}

}  // namespace
}  // namespace nomad_harvester::cli
