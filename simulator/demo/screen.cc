// SPDX-License-Identifier: Apache-2.0
#include "screen.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <sys/ioctl.h>
#include <unistd.h>

#include "terminal.h"

namespace nomad_harvester::demo {
namespace {

constexpr std::size_t kLogLines = 8;
constexpr std::size_t kNarrowest = 20;
// The second screen, without a cursor, and without wrapping: while the window becomes narrower, a
// line may be too long for one frame.
constexpr char kTake[] = "\x1b[?1049h\x1b[?25l\x1b[?7l";
constexpr char kGiveBack[] = "\x1b[?7h\x1b[?25h\x1b[?1049l";

cli::Terminal Describe(std::size_t columns) {
  config::StringMap environment;
  for (const char* name : {"TERM", "NO_COLOR", "COLUMNS"}) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing changes the environment.
    if (const char* value = std::getenv(name); value != nullptr) environment[name] = value;
  }
  return cli::DescribeTerminal(isatty(STDOUT_FILENO) != 0, columns, environment);
}

// Removes what is the same in all lines: the date, the pool and the empty policy_id.
std::string Shorten(std::string line) {
  const bool dated = line.size() > 25 && line[4] == '-' && line[10] == 'T';
  if (dated) line = line.substr(11, 12) + line.substr(24);
  for (const std::string_view same : {" pool=nomad/web", " policy_id=\"\""}) {
    const std::size_t at = line.find(same);
    if (at != std::string::npos) line.erase(at, same.size());
  }
  return line;
}

}  // namespace

Paper PaperNow() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) size = {};
  const cli::Terminal terminal = Describe(size.ws_col);
  return {.width = std::max(terminal.width, kNarrowest),
          .height = size.ws_row > 0 ? size.ws_row : std::size_t{24},
          .colour = terminal.colour};
}

Screen::Screen() : redraws_(Describe(0).redraws), start_(std::chrono::steady_clock::now()) {
  if (redraws_) std::cout << kTake << std::flush;
}

Screen::~Screen() { End(); }

void Screen::End() {
  if (!redraws_) return;
  redraws_ = false;
  picture_.done.clear();  // the summary has them
  Paper paper = PaperNow();
  paper.height = 0;
  std::cout << kGiveBack;
  for (const std::string& line : Draw(picture_, paper)) std::cout << line << "\n";
  std::cout << std::flush;
}

void Screen::SetTitle(const std::string& title) {
  picture_.title = title;
  if (!redraws_) Print(title);
}

void Screen::Update(const std::vector<Row>& rows, const std::vector<std::string>& log) {
  for (const std::string& line : log) {
    if (!redraws_) Print("plugin: " + Shorten(line));
    picture_.log.push_back(Shorten(line));
  }
  if (picture_.log.size() > kLogLines) {
    picture_.log.erase(picture_.log.begin(),
                       picture_.log.end() - static_cast<std::ptrdiff_t>(kLogLines));
  }
  if (!redraws_) PrintChanges(rows);
  picture_.rows = rows;
  if (redraws_) Redraw();
}

void Screen::Print(const std::string& line) {
  if (redraws_) {
    picture_.done.push_back(line);
    Redraw();
    return;
  }
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
  std::array<char, 16> time{};
  std::snprintf(time.data(), time.size(), "%6.1fs ", elapsed.count());
  std::cout << time.data() << line << "\n" << std::flush;
}

// Each line is erased before it is written: the whole screen would flicker.
void Screen::Redraw() {
  const Paper paper = PaperNow();
  const std::vector<std::string> lines = Draw(picture_, paper);
  std::string frame = "\x1b[H";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    frame += (i == 0 ? "\x1b[2K" : "\r\n\x1b[2K") + lines.at(i);
  }
  if (lines.size() < paper.height) frame += "\r\n\x1b[J";
  std::cout << frame << std::flush;
}

void Screen::PrintChanges(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    if (std::find(picture_.rows.begin(), picture_.rows.end(), row) != picture_.rows.end()) continue;
    Print(row.name + ": VM " + row.phase + (row.marked ? ", marked" : "") + "; node " + row.node +
          ", " + row.eligibility + ", drain " + row.drain +
          "; work: " + (row.work.empty() ? "-" : row.work));
  }
  for (const Row& old : picture_.rows) {
    const bool still = std::any_of(rows.begin(), rows.end(),
                                   [&old](const Row& row) { return row.name == old.name; });
    if (!still) Print(old.name + ": gone");
  }
}

}  // namespace nomad_harvester::demo
