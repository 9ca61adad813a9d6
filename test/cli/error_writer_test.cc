// SPDX-License-Identifier: Apache-2.0
#include "error_writer.h"

#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/base/secret.h"
#include "nomad_harvester/base/status.h"

#include "nlohmann/json.hpp"

namespace nomad_harvester::cli {
namespace {

TEST(ErrorWriter, puts_the_command_before_each_line_and_folds_it) {
  std::ostringstream err;
  const ErrorWriter errors("gc", {.width = 30}, err);
  EXPECT_EQ(errors.Refuse(base::NotFound("no pool of this name\n\x1b[31mred"), 1), 1);
  EXPECT_EQ(err.str(),
            "nomad-harvester gc: no pool of\n  this name\nnomad-harvester gc:\n  \\x1b[31mred\n");
  std::ostringstream general;
  EXPECT_EQ(ErrorWriter("", {}, general).Refuse("no command", 2), 2);
  EXPECT_EQ(general.str(), "nomad-harvester: no command\n");
}

TEST(ErrorWriter, P3_writes_one_line_of_ASCII_JSON_and_no_secret) {
  const base::Secret token("sesame-street");
  std::ostringstream err;
  const ErrorWriter errors("status", {.json = true, .width = 10}, err);
  EXPECT_EQ(errors.Refuse("first sesame-street\nsecond → \x1b \xff", 3), 3);
  const std::string text = err.str();
  EXPECT_EQ(text.find('\n'), text.size() - 1);
  for (const char c : text) EXPECT_TRUE(c == '\n' || (c >= ' ' && c <= '~')) << text;
  const nlohmann::json error = nlohmann::json::parse(text)["error"];
  EXPECT_EQ(error["command"], "status");
  EXPECT_EQ(error["message"], "first REDACTED\nsecond → \x1b \xef\xbf\xbd");
  EXPECT_EQ(error["lines"].size(), 2U);
  EXPECT_EQ(error["exit_code"], 3);
  std::ostringstream general;
  EXPECT_EQ(ErrorWriter("", {.json = true}, general).Refuse("no command", 2), 2);
  EXPECT_FALSE(nlohmann::json::parse(general.str())["error"].contains("command"));
}

TEST(ErrorWriter, after_an_interrupt_every_copy_gives_its_exit_code) {
  std::ostringstream err;
  const ErrorStyle style{.json = true};
  const ErrorWriter errors("gc", style, err);
  ErrorWriter("gc", style, err).Interrupt(130);
  EXPECT_EQ(errors.ExitCode(0), 130);
  EXPECT_EQ(errors.Refuse("cancelled", 1), 130);
  EXPECT_EQ(nlohmann::json::parse(err.str())["error"]["exit_code"], 130);
}

TEST(ErrorWriter, of_a_command_that_answers_by_its_exit_code_every_error_is_1) {
  std::ostringstream err;
  EXPECT_EQ(ErrorWriter("plan", {.answers_by_exit_code = true}, err).Refuse("wrong usage", 2), 1);
}

TEST(ErrorWriter, a_note_is_for_people_alone) {
  std::ostringstream err;
  ErrorWriter("status", {}, err).Note("using the files of /etc");
  EXPECT_EQ(err.str(), "nomad-harvester status: using the files of /etc\n");
  std::ostringstream silent;
  ErrorWriter("status", {.notes = false}, silent).Note("using the files of /etc");
  EXPECT_EQ(silent.str(), "");
}

TEST(OutputOf, recognises_the_option_in_each_form) {
  EXPECT_EQ(OutputOf({"status", "--output", "json"}), "json");
  EXPECT_EQ(OutputOf({"status", "--output=json"}), "json");
  EXPECT_EQ(OutputOf({"-o", "yaml", "status"}), "yaml");
  EXPECT_EQ(OutputOf({"-ojson"}), "json");
  EXPECT_EQ(OutputOf({"-o=json"}), "json");
  EXPECT_EQ(OutputOf({"status", "json"}), "");
  EXPECT_EQ(OutputOf({"status", "--output", "table"}), "table");
  EXPECT_EQ(OutputOf({"status", "--output"}), "");
}

}  // namespace
}  // namespace nomad_harvester::cli
