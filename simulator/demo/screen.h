// SPDX-License-Identifier: Apache-2.0
// A picture that is redrawn in place on a terminal; a line per change anywhere else.
#ifndef NOMAD_HARVESTER_SIMULATOR_DEMO_SCREEN_H_
#define NOMAD_HARVESTER_SIMULATOR_DEMO_SCREEN_H_

#include <chrono>
#include <string>
#include <vector>

#include "picture.h"

namespace nomad_harvester::demo {

// As the terminal is now: its window may change.
Paper PaperNow();

class Screen {
 public:
  // On a terminal that can redraw: takes its second screen, which has no scrollback.
  Screen();
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  // The current step, shown above the table.
  void SetTitle(const std::string& title);
  void Update(const std::vector<Row>& rows, const std::vector<std::string>& log);
  // A step has ended: a line that stays, on a terminal above the table.
  void Print(const std::string& line);
  // Gives the terminal back as it was and leaves the last picture there. Idempotent.
  void End();

 private:
  void Redraw();
  void PrintChanges(const std::vector<Row>& rows);

  bool redraws_;
  const std::chrono::steady_clock::time_point start_;
  Picture picture_;
};

}  // namespace nomad_harvester::demo

#endif  // NOMAD_HARVESTER_SIMULATOR_DEMO_SCREEN_H_
