// SPDX-License-Identifier: Apache-2.0
// Text for terminals. Private to module cli.
#ifndef NOMAD_HARVESTER_CLI_TEXT_H_
#define NOMAD_HARVESTER_CLI_TEXT_H_

#include <string>
#include <string_view>
#include <vector>

namespace nomad_harvester::cli {

// One line, without control sequences and secrets: text from other systems may contain anything.
std::string Printable(std::string_view text);

// Columns, two spaces apart; the last one is not padded, and an empty cell is a "-". The first row
// is the heading. Each line ends with a newline.
std::string Table(const std::vector<std::vector<std::string>>& rows);

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_TEXT_H_
