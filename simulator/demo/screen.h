// SPDX-License-Identifier: Apache-2.0
// A table that is redrawn in place on a terminal; a line per change anywhere else.
#ifndef NOMAD_HARVESTER_SIMULATOR_DEMO_SCREEN_H_
#define NOMAD_HARVESTER_SIMULATOR_DEMO_SCREEN_H_

#include <chrono>
#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "view.h"

namespace nomad_harvester::demo {

class Screen {
 public:
  Screen();
  // Keeps the last table on the terminal and shows the cursor again.
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  // The current step, shown above the table.
  void SetTitle(const std::string& title);
  void Update(const std::vector<Row>& rows, const std::vector<std::string>& log);
  // Prints a permanent line; on a terminal above the table.
  void Print(const std::string& line);

 private:
  void Erase();
  void Draw();
  void PrintChanges(const std::vector<Row>& rows);
  std::string Paint(const std::string& text, std::string_view colour) const;
  std::string Line(const Row& row) const;

  const bool terminal_;
  const std::chrono::steady_clock::time_point start_;
  std::size_t drawn_ = 0;  // lines above the cursor
  std::string title_;
  std::vector<Row> rows_;
  std::deque<std::string> log_;  // the last lines
};

}  // namespace nomad_harvester::demo

#endif  // NOMAD_HARVESTER_SIMULATOR_DEMO_SCREEN_H_
