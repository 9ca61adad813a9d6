// SPDX-License-Identifier: Apache-2.0
// What a terminal can show, and text that fits it. Private to module cli.
#ifndef NOMAD_HARVESTER_CLI_TERMINAL_H_
#define NOMAD_HARVESTER_CLI_TERMINAL_H_

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>

#include "nomad_harvester/config/plugin_config.h"

namespace nomad_harvester::cli {

// Where a stream leads to.
struct Terminal {
  std::size_t width = 0;   // columns; 0: no limit, because it is no terminal
  std::size_t height = 0;  // lines; 0: not known
  bool colour = false;
  bool redraws = false;  // a line may be erased and written again
};

// `columns`: as the kernel says, 0 if it does not know; then COLUMNS of the environment, else 80.
// Nothing is redrawn or coloured with TERM=dumb, and nothing coloured if NO_COLOR is set and not
// empty.
Terminal DescribeTerminal(bool is_terminal, std::size_t columns,
                          const config::StringMap& environment);
// The same of a file descriptor.
Terminal TerminalOf(int fd, const config::StringMap& environment);

// Columns of UTF-8 text: one for each character, none for a combining accent.
std::size_t DisplayWidth(std::string_view text);

// CLI11 does not break lines, and terminals break them within words. Breaks each line of `text` at
// spaces so that it fits into `width` columns (0: no limit); what follows a break is indented. A
// word that is longer than the line is kept whole.
std::string Fold(std::string_view text, std::size_t width, std::size_t indent);

// The first columns of `line` that fit into `width`.
std::string Clip(std::string_view line, std::size_t width);

enum class Colour { kRed, kYellow, kGreen };
struct Painted {
  std::string_view beginning;
  Colour colour;
};
// On a terminal with colours: `text`, in which lines that begin with one of these words begin with
// its colour. To be called last: colours are control sequences, and have no width.
std::string Paint(std::string_view text, std::initializer_list<Painted> words,
                  const Terminal& terminal);

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_TERMINAL_H_
