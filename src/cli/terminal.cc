// SPDX-License-Identifier: Apache-2.0
#include "terminal.h"

#include <algorithm>
#include <sys/ioctl.h>
#include <unistd.h>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/text.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"

namespace nomad_harvester::cli {
namespace {

constexpr std::size_t kUsualWidth = 80;

// U+0300 to U+036F.
bool IsCombining(std::string_view character) {
  return character >= "\u0300" && character <= "\u036f" && character.size() == 2;
}

// Returns how many bytes of `line` fit into `width` columns, at least its first word. Does not
// break within the first `indent` bytes.
std::size_t BreakOf(std::string_view line, std::size_t width, std::size_t indent) {
  std::size_t end = std::string_view::npos;
  for (std::size_t space = line.find(' ', indent); space != std::string_view::npos;
       space = line.find(' ', space + 1)) {
    if (end != std::string_view::npos && DisplayWidth(line.substr(0, space)) > width) break;
    end = space;
  }
  return end == std::string_view::npos ? line.size() : end;
}

constexpr char kNoColour[] = "\x1b[0m";

std::string FoldLine(std::string_view line, std::size_t width, std::size_t indent) {
  std::string folded;
  const std::string margin(indent, ' ');
  std::string rest(line);
  std::size_t own_indent = std::min(rest.find_first_not_of(' '), rest.size());
  while (DisplayWidth(rest) > width) {
    const std::size_t end = BreakOf(rest, width, own_indent);
    const std::size_t next = rest.find_first_not_of(' ', end);
    if (next == std::string::npos) break;
    folded += rest.substr(0, rest.find_last_not_of(' ', end) + 1) + "\n";
    rest = margin + rest.substr(next);
    own_indent = indent;
  }
  return folded + rest;
}

}  // namespace

Terminal DescribeTerminal(bool is_terminal, std::size_t columns,
                          const config::StringMap& environment) {
  if (!is_terminal) return {};
  Terminal terminal{.width = columns};
  if (terminal.width == 0 &&
      (!absl::SimpleAtoi(base::ValueOf(environment, "COLUMNS"), &terminal.width) ||
       terminal.width == 0)) {
    terminal.width = kUsualWidth;
  }
  const std::string kind = base::ValueOf(environment, "TERM");
  terminal.redraws = !kind.empty() && kind != "dumb";
  terminal.colour = terminal.redraws && base::ValueOf(environment, "NO_COLOR").empty();
  return terminal;
}

Terminal TerminalOf(int fd, const config::StringMap& environment) {
  winsize size{};
  if (ioctl(fd, TIOCGWINSZ, &size) != 0) size = {};
  Terminal terminal = DescribeTerminal(isatty(fd) == 1, size.ws_col, environment);
  terminal.height = size.ws_row;
  return terminal;
}

std::string Paint(std::string_view text, std::initializer_list<Painted> words,
                  const Terminal& terminal) {
  if (!terminal.colour) return std::string(text);
  std::string painted;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
    std::string_view line = text.substr(begin, end - begin);
    for (const Painted& word : words) {
      const std::size_t length = word.beginning.size();
      if (!line.starts_with(word.beginning) ||
          (line.size() > length && absl::ascii_isalnum(static_cast<unsigned char>(line[length])))) {
        continue;
      }
      painted += "\x1b[" + std::to_string(static_cast<int>(word.colour)) + "m";
      painted += word.beginning;
      painted += kNoColour;
      line.remove_prefix(length);
      break;
    }
    painted += line;
    begin = end;
  }
  return painted;
}

std::size_t DisplayWidth(std::string_view text) {
  std::size_t width = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = begin + 1;
    while (end < text.size() && base::ContinuesCharacter(text[end])) ++end;
    if (!IsCombining(text.substr(begin, end - begin))) ++width;
    begin = end;
  }
  return width;
}

std::string Fold(std::string_view text, std::size_t width, std::size_t indent) {
  if (width == 0) return std::string(text);
  std::string folded;
  const std::size_t margin = std::min(indent, width / 2);
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    folded += FoldLine(text.substr(begin, end - begin), width, margin);
    if (end < text.size()) folded += '\n';
    begin = end + 1;
  }
  return folded;
}

}  // namespace nomad_harvester::cli
