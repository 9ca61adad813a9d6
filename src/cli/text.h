// SPDX-License-Identifier: Apache-2.0
// Text for terminals, and documents for programs. Private to module cli.
#ifndef NOMAD_HARVESTER_CLI_TEXT_H_
#define NOMAD_HARVESTER_CLI_TEXT_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "nlohmann/json_fwd.hpp"

namespace nomad_harvester::cli {

// One line, without control sequences and secrets: text from other systems may contain anything.
std::string Printable(std::string_view text);

// A word of the command line as an error repeats it, in quotation marks. What may be a secret is
// not repeated: a setting whose --set was forgotten, or a token.
bool MayBeSecret(std::string_view word);
std::string GivenWord(std::string_view word);

// The document in ASCII, so that no control character of any kind reaches a terminal, and without
// secrets in its texts; names of members are its own. With a newline at its end.
std::string PrintableJson(nlohmann::ordered_json document);
std::string PrintableYaml(nlohmann::ordered_json document);
// As `output` says, "json" or "yaml".
std::string PrintableDocument(const std::string& output, nlohmann::ordered_json document);
// The same with its secrets: one document in block style, without "---".
std::string ToYaml(const nlohmann::ordered_json& document);

// Enough of a node's ID for people to identify it.
std::string ShortId(std::string_view id);

// "a, b": at most five, and how many more there are.
std::string FirstFew(const std::vector<std::string>& names);

// Columns, two spaces apart; the last one is not padded, and an empty cell is a "-". The first row
// is the heading. Each line ends with a newline.
//
// If a line would have more than `width` columns (0: no limit), each row is a block of lines
// instead, "HEADING:  cell", without its empty cells and with an empty line between the blocks: a
// row that is broken somewhere is hard to read.
std::string Table(const std::vector<std::vector<std::string>>& rows, std::size_t width = 0);

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_TEXT_H_
