// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "command.h"
#include "gtest/gtest.h"

namespace nomad_harvester::cli {
namespace {

// The options of `nomad-harvester dev`, parsed without running it.
class Parsed {
 public:
  explicit Parsed(const std::vector<std::string>& arguments) {
    AddDevCommand(app_, {.environment = environment_, .exit_code = exit_code_});
    dev_ = app_.get_subcommand("dev");
    // A command of its own that is missing ends the parsing before it would run.
    dev_->require_subcommand(1);
    try {
      app_.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
    } catch (const CLI::RequiredError&) {
    }
  }

  bool is_dev() const { return dev_->parsed(); }
  std::string listen() const { return dev_->get_option("--listen")->as<std::string>(); }
  bool simulate() const { return dev_->get_option("--simulate")->as<bool>(); }

 private:
  const config::StringMap environment_;
  int exit_code_ = kExitOk;
  CLI::App app_;
  CLI::App* dev_ = nullptr;
};

TEST(DevCommand, listens_on_a_private_socket_by_default) {
  const Parsed parsed({"dev"});
  EXPECT_TRUE(parsed.is_dev());
  EXPECT_EQ(parsed.listen(), "");
  EXPECT_FALSE(parsed.simulate());
}

TEST(DevCommand, takes_an_address_in_either_spelling) {
  EXPECT_EQ(Parsed({"dev", "--listen", "unix:/run/dev.sock"}).listen(), "unix:/run/dev.sock");
  EXPECT_EQ(Parsed({"dev", "--listen=127.0.0.1:4711"}).listen(), "127.0.0.1:4711");
}

TEST(DevCommand, simulates_when_asked_to) {
  EXPECT_TRUE(Parsed({"dev", "--simulate"}).simulate());
  EXPECT_TRUE(Parsed({"dev", "--listen", "x", "--simulate"}).simulate());
}

TEST(DevCommand, what_goes_wrong_is_for_simulated_systems_only) {
  EXPECT_NO_THROW(Parsed({"dev", "--simulate", "--fail", "quota", "--kill-after", "3"}));
  EXPECT_THROW(Parsed({"dev", "--fail", "quota"}), CLI::ParseError);
  EXPECT_THROW(Parsed({"dev", "--kill-after", "3"}), CLI::ParseError);
  EXPECT_THROW(Parsed({"dev", "--simulate", "--fail", "fire"}), CLI::ParseError);
  EXPECT_THROW(Parsed({"dev", "--simulate", "--kill-after", "0"}), CLI::ParseError);
}

TEST(DevCommand, settings_are_for_real_systems_only) {
  EXPECT_NO_THROW(Parsed({"dev", "--set", "a=b", "--set", "c=d"}));
  EXPECT_THROW(Parsed({"dev", "--simulate", "--set", "a=b"}), CLI::ParseError);
}

TEST(DevCommand, is_not_another_command) {
  EXPECT_FALSE(Parsed(std::vector<std::string>()).is_dev());
  EXPECT_THROW(Parsed({"devel"}), CLI::ParseError);
  EXPECT_THROW(Parsed({"dev", "--listen", "a", "--listen", "b"}), CLI::ParseError);
}

}  // namespace
}  // namespace nomad_harvester::cli
