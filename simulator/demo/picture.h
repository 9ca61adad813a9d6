// SPDX-License-Identifier: Apache-2.0
// What the demo shows on a terminal, as lines of text.
#ifndef NOMAD_HARVESTER_SIMULATOR_DEMO_PICTURE_H_
#define NOMAD_HARVESTER_SIMULATOR_DEMO_PICTURE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "view.h"

namespace nomad_harvester::demo {

struct Picture {
  std::string title{};              // the current step
  std::vector<std::string> done{};  // a line for each step that has ended
  std::vector<Row> rows{};
  std::vector<std::string> log{};  // oldest first
};

struct Paper {
  std::size_t width = 80;  // columns, at least 20
  std::size_t height = 0;  // lines; 0: no limit
  bool colour = false;
};

// No line is wider than the paper: the table continues below, indented, and texts are folded. If
// there are more lines than the paper has, the oldest of the log are left out, then those of
// `done`; of a table that alone is too long the last line says how many are missing.
std::vector<std::string> Draw(const Picture& picture, const Paper& paper);

}  // namespace nomad_harvester::demo

#endif  // NOMAD_HARVESTER_SIMULATOR_DEMO_PICTURE_H_
