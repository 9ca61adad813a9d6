// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "picture.h"

namespace nomad_harvester::demo {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Picture Draining() {
  const std::string work = "api api(stopping) shop(starting) shop";
  return {.title = "Scale to 2: three nodes are drained, their work moves",
          .done = {"scale to 5    5 VMs exist     5.2 s"},
          .rows = {{.name = "web-abc12",
                    .phase = "Running",
                    .marked = true,
                    .node = "ready",
                    .eligibility = "ineligible",
                    .drain = "draining",
                    .work = work},
                   {.name = "web-abc13", .phase = "Provisioning"}},
          .log = {"10:00:01.000 [INFO] oldest", "10:00:02.000 [INFO] url=" + std::string(90, 'x')}};
}

std::string Joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

// Without what folding adds.
std::string Letters(std::string text) {
  text.erase(std::remove_if(text.begin(), text.end(), [](char c) { return c == ' ' || c == '\n'; }),
             text.end());
  return text;
}

TEST(DemoPicture, is_a_line_for_each_vm_where_there_is_room) {
  const std::vector<std::string> lines = Draw(Draining(), {.width = 200});
  EXPECT_THAT(
      lines,
      ElementsAre(
          "scale to 5    5 VMs exist     5.2 s",
          "Scale to 2: three nodes are drained, their work moves", "",
          "VM            PHASE        MARK    NOMAD NODE  ELIGIBILITY  DRAIN     ALLOCATIONS",
          "web-abc12     Running      marked  ready       ineligible   draining  api api(stopping) "
          "shop(starting) shop",
          "web-abc13     Provisioning -       -           -            -", "",
          "10:00:01.000 [INFO] oldest", HasSubstr("url=")));
}

TEST(DemoPicture, folds_at_60_columns) {
  Picture picture = Draining();
  picture.log.clear();
  EXPECT_THAT(Draw(picture, {.width = 60}),
              ElementsAre("scale to 5    5 VMs exist     5.2 s",
                          "Scale to 2: three nodes are drained, their work moves", "",
                          "VM            PHASE        MARK    NOMAD NODE  ELIGIBILITY",
                          "  DRAIN     ALLOCATIONS",
                          "web-abc12     Running      marked  ready       ineligible",
                          "  draining  api api(stopping) shop(starting) shop",
                          "web-abc13     Provisioning -       -           -", "  -"));
}

TEST(DemoPicture, of_any_width_cuts_nothing_and_has_no_line_that_is_longer) {
  const std::string whole = Letters(Joined(Draw(Draining(), {.width = 1000})));
  for (std::size_t width = 20; width < 150; ++width) {
    const std::vector<std::string> lines = Draw(Draining(), {.width = width});
    for (const std::string& line : lines) EXPECT_LE(line.size(), width) << line;
    std::string letters = Letters(Joined(lines));
    EXPECT_EQ(letters.size(), whole.size()) << width << "\n" << Joined(lines);
  }
}

TEST(DemoPicture, of_few_lines_leaves_out_the_oldest_of_the_log_and_never_more_than_fit) {
  const std::string low = Joined(Draw(Draining(), {.width = 60, .height = 11}));
  EXPECT_THAT(low, Not(HasSubstr("oldest")));
  EXPECT_THAT(low, HasSubstr("web-abc13"));
  for (std::size_t height = 1; height < 20; ++height) {
    EXPECT_LE(Draw(Draining(), {.width = 60, .height = height}).size(), height);
  }
  EXPECT_EQ(Draw(Draining(), {.width = 60, .height = 5}).back(), "(4 more)");
}

TEST(DemoPicture, has_control_sequences_only_with_colour) {
  EXPECT_THAT(Joined(Draw(Draining(), {.width = 60})), Not(HasSubstr("\x1b")));
  EXPECT_THAT(Joined(Draw(Draining(), {.width = 60, .colour = true})),
              HasSubstr("\x1b[33mmarked\x1b[0m"));
}

}  // namespace
}  // namespace nomad_harvester::demo
