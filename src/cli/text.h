// SPDX-License-Identifier: Apache-2.0
// Formats text for terminals, and documents for programs. Private to module cli.
#ifndef NOMAD_HARVESTER_CLI_TEXT_H_
#define NOMAD_HARVESTER_CLI_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nomad_harvester/base/text.h"

#include "nlohmann/json_fwd.hpp"

namespace nomad_harvester::cli {

// Returns one line without control sequences and secrets; text from other systems may contain
// anything.
std::string Printable(std::string_view text);
// Likewise of each line; the last one ends with a newline, too.
std::string PrintableLines(std::string_view lines);
// "1 VM", "2 VMs".
std::string Counted(std::int64_t count, const std::string& what);

// Quotes a command-line word for an error. Words that may be secrets are not repeated: a setting
// given without --set, or a token.
bool MayBeSecret(std::string_view word);
std::string GivenWord(std::string_view word);
// ", got "abc""; empty if the word may be a secret.
std::string Got(std::string_view word);

// "; did you mean web?"; empty without a nearest name.
std::string DidYouMean(const std::optional<std::string>& nearest);

// Returns the document in ASCII, so that no control character reaches a terminal, and without
// secrets in its texts; member names are our own. Ends with a newline.
std::string PrintableJson(nlohmann::ordered_json document);
std::string PrintableYaml(nlohmann::ordered_json document);
// `output`: "json" or "yaml".
std::string PrintableDocument(const std::string& output, nlohmann::ordered_json document);
// Likewise, but keeps secrets: one document in block style, without "---".
std::string ToYaml(const nlohmann::ordered_json& document);

// Returns enough of a node's ID for people to identify it.
std::string ShortId(std::string_view id);

using base::FirstFew;

// Columns are two spaces apart; the last one is not padded, and an empty cell is a "-". The first
// row is the heading. Each line ends with a newline.
//
// If a line would exceed `width` columns (0: no limit), each row becomes a block of lines "HEADING:
// cell", without empty cells and separated by empty lines, because a wrapped row is hard to read.
std::string Table(const std::vector<std::vector<std::string>>& rows, std::size_t width = 0);

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_TEXT_H_
