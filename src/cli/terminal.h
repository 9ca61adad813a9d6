// SPDX-License-Identifier: Apache-2.0
// Describes a terminal, and fits text to it. Private to module cli.
#ifndef NOMAD_HARVESTER_CLI_TERMINAL_H_
#define NOMAD_HARVESTER_CLI_TERMINAL_H_

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>

#include "nomad_harvester/config/plugin_config.h"

namespace nomad_harvester::cli {

// The destination of a stream.
struct Terminal {
  std::size_t width = 0;   // columns; 0: no limit, because it is not a terminal
  std::size_t height = 0;  // lines; 0: not known
  bool colour = false;
  bool redraws = false;  // a line may be erased and written again
};

// `columns`: from the kernel, 0 if unknown; then COLUMNS of the environment, else 80. With
// TERM=dumb nothing is redrawn or coloured; nothing is coloured if NO_COLOR is set and not empty.
Terminal DescribeTerminal(bool is_terminal, std::size_t columns,
                          const config::StringMap& environment);
// Likewise for a file descriptor.
Terminal TerminalOf(int fd, const config::StringMap& environment);

// Returns the columns of UTF-8 text: one per character, none for a combining accent.
std::size_t DisplayWidth(std::string_view text);

// Breaks each line of `text` at spaces so that it fits into `width` columns (0: no limit), because
// CLI11 does not break lines and terminals break them within words. Continuations are indented. A
// word that is longer than the line is kept whole.
std::string Fold(std::string_view text, std::size_t width, std::size_t indent);

enum class Colour { kRed = 31, kGreen = 32, kYellow = 33 };  // as terminals number them
struct Painted {
  std::string_view beginning;
  Colour colour;
};
// On a terminal with colours, colours these words at the beginnings of lines. Call it last: colours
// are control sequences and have no width.
std::string Paint(std::string_view text, std::initializer_list<Painted> words,
                  const Terminal& terminal);

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_TERMINAL_H_
