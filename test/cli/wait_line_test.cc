// SPDX-License-Identifier: Apache-2.0
#include "wait_line.h"

#include <iostream>

#include <gtest/gtest.h>

#include "cli/captured_output.h"

namespace nomad_harvester::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(OpenRequests, the_oldest_one_is_told_once_it_takes_longer_than_a_second) {
  const base::MonoTime begin{};
  OpenRequests requests;
  EXPECT_EQ(requests.Line(begin), "");
  const OpenRequests::Id first = requests.Begin("Nomad at http://n:4646", begin);
  requests.Begin("Harvester at https://h", begin + seconds(2));
  EXPECT_EQ(requests.Line(begin + milliseconds(999)), "");
  EXPECT_EQ(requests.Line(begin + milliseconds(3900)), "waiting for Nomad at http://n:4646 (3s)");
  requests.End(first);
  EXPECT_EQ(requests.Line(begin + milliseconds(3900)), "waiting for Harvester at https://h (1s)");
}

TEST(WaitLine, is_erased_before_other_text_and_not_drawn_into_a_line) {
  const CapturedOutput output;
  {
    WaitLine line({.width = 30, .redraws = true});
    line.requests().Begin("Nomad at http://nomad.example:4646", {});
    while (output.Stderr().find("waiting") == std::string::npos) std::this_thread::yield();
    std::cerr << "text\n";
  }
  const std::string shown = output.Stderr();
  const std::string drawn = "\r\x1b[Kwaiting for Nomad at http://n";
  EXPECT_EQ(shown.find(drawn + "\r\x1b[Ktext\n"), 0U) << shown;
  EXPECT_TRUE(shown.ends_with("\r\x1b[K") || shown.ends_with("text\n")) << shown;
}

TEST(WaitLine, shows_nothing_unless_the_terminal_redraws) {
  const CapturedOutput output;
  std::streambuf* const before = std::cerr.rdbuf();
  WaitLine line({.width = 30, .redraws = false});
  line.requests().Begin("Nomad", {});
  EXPECT_EQ(std::cerr.rdbuf(), before);
  EXPECT_EQ(output.Stderr(), "");
}

}  // namespace
}  // namespace nomad_harvester::cli
