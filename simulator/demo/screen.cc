// SPDX-License-Identifier: Apache-2.0
#include "screen.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <iostream>
#include <map>
#include <sys/ioctl.h>
#include <unistd.h>

namespace nomad_harvester::demo {
namespace {

constexpr std::size_t kLogLines = 8;
constexpr std::string_view kGreen = "32";
constexpr std::string_view kYellow = "33";
constexpr std::string_view kRed = "31";
constexpr std::string_view kDim = "2";
constexpr std::string_view kBold = "1";
constexpr std::array<const char*, 7> kHeads = {"VM",          "PHASE", "MARK",       "NOMAD NODE",
                                               "ELIGIBILITY", "DRAIN", "ALLOCATIONS"};
constexpr std::array<std::size_t, 6> kWidths = {14, 13, 8, 12, 13, 10};

struct Size {
  std::size_t columns = 80;
  std::size_t lines = 24;
};

Size SizeOfTerminal() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) {
    return {};
  }
  return {size.ws_col, size.ws_row};
}

std::string Pad(std::string text, std::size_t width) {
  if (text.size() < width) text.append(width - text.size(), ' ');
  return text;
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

std::string_view ColourOf(const std::string& state) {
  static const std::map<std::string, std::string_view> kColours = {
      {"Running", kGreen},       {"ready", kGreen},    {"eligible", kGreen},  {"draining", kYellow},
      {"ineligible", kYellow},   {"down", kRed},       {"Terminating", kRed}, {"marked", kYellow},
      {"Provisioning", kYellow}, {"Starting", kYellow}};
  const auto found = kColours.find(state);
  return found == kColours.end() ? kDim : found->second;
}

}  // namespace

Screen::Screen() : terminal_(isatty(STDOUT_FILENO) != 0), start_(std::chrono::steady_clock::now()) {
  if (terminal_) std::cout << "\x1b[?25l";
}

Screen::~Screen() {
  if (terminal_) std::cout << "\x1b[?25h" << std::flush;
}

void Screen::SetTitle(const std::string& title) {
  title_ = title;
  if (!terminal_) Print(title);
}

void Screen::Update(const std::vector<Row>& rows, const std::vector<std::string>& log) {
  for (const std::string& line : log) {
    if (!terminal_) Print("plugin: " + Shorten(line));
    log_.push_back(Shorten(line));
    if (log_.size() > kLogLines) log_.pop_front();
  }
  if (!terminal_) PrintChanges(rows);
  rows_ = rows;
  if (!terminal_) return;
  Erase();
  Draw();
}

void Screen::Print(const std::string& line) {
  if (terminal_) {
    Erase();
    std::cout << line << "\n";
    Draw();
    return;
  }
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
  std::array<char, 16> time{};
  std::snprintf(time.data(), time.size(), "%6.1fs ", elapsed.count());
  std::cout << time.data() << line << "\n" << std::flush;
}

void Screen::Erase() {
  if (drawn_ > 0) std::cout << "\x1b[" << drawn_ << "A\r\x1b[J";
  drawn_ = 0;
}

void Screen::Draw() {
  const Size size = SizeOfTerminal();
  std::vector<std::string> lines = {"", Paint(title_.substr(0, size.columns - 1), kBold), ""};
  std::string heads;
  for (std::size_t i = 0; i < kHeads.size(); ++i) {
    heads += i < kWidths.size() ? Pad(kHeads.at(i), kWidths.at(i)) : std::string(kHeads.at(i));
  }
  lines.push_back(Paint(heads.substr(0, size.columns - 1), kDim));
  for (const Row& row : rows_) lines.push_back(Line(row));
  if (rows_.empty()) lines.push_back(Paint("(none)", kDim));
  lines.emplace_back();
  for (const std::string& line : log_)
    lines.push_back(Paint(line.substr(0, size.columns - 1), kDim));
  // Lines that do not fit would scroll and could not be redrawn.
  if (lines.size() + 1 > size.lines) lines.resize(size.lines - 1);
  for (const std::string& line : lines) std::cout << line << "\n";
  std::cout << std::flush;
  drawn_ = lines.size();
}

std::string Screen::Paint(const std::string& text, std::string_view colour) const {
  return "\x1b[" + std::string(colour) + "m" + text + "\x1b[0m";
}

std::string Screen::Line(const Row& row) const {
  const std::array<std::string, 6> cells = {row.name, row.phase,       row.marked ? "marked" : "-",
                                            row.node, row.eligibility, row.drain};
  const std::size_t columns = SizeOfTerminal().columns - 1;
  std::string line;
  std::size_t width = 0;
  for (std::size_t i = 0; i < cells.size() && width < columns; ++i) {
    const std::string cell = Pad(cells.at(i), kWidths.at(i)).substr(0, columns - width);
    line += i == 0 ? cell : Paint(cell, ColourOf(cells.at(i)));
    width += cell.size();
  }
  return width < columns ? line + row.work.substr(0, columns - width) : line;
}

void Screen::PrintChanges(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    if (std::find(rows_.begin(), rows_.end(), row) != rows_.end()) continue;
    Print(row.name + ": VM " + row.phase + (row.marked ? ", marked" : "") + "; node " + row.node +
          ", " + row.eligibility + ", drain " + row.drain +
          "; work: " + (row.work.empty() ? "-" : row.work));
  }
  for (const Row& old : rows_) {
    const bool still = std::any_of(rows.begin(), rows.end(),
                                   [&old](const Row& row) { return row.name == old.name; });
    if (!still) Print(old.name + ": gone");
  }
}

}  // namespace nomad_harvester::demo
