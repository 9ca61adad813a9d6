// SPDX-License-Identifier: Apache-2.0
#include "template_parts.h"

#include <algorithm>
#include <limits>

#include "cursor.h"

namespace nomad_harvester::hcl {
namespace {

// White space at the front of `text`: characters, counted up to `limit`, and bytes.
struct Indentation {
  std::size_t characters = 0;
  std::size_t bytes = 0;
};

Indentation IndentationOf(std::string_view text, std::size_t limit) {
  Indentation result;
  while (result.characters < limit) {
    const std::size_t length = SpaceLength(text.substr(result.bytes));
    if (length == 0) break;
    result.bytes += length;
    ++result.characters;
  }
  return result;
}

constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();

// True if the line contains only white space.
bool IsBlank(const std::string& line) {
  return line.ends_with('\n') && IndentationOf(line, kAll).bytes == line.size();
}

}  // namespace

std::string* LiteralOf(TemplateParts* parts) {
  if (parts->empty() || parts->back().value.has_value()) parts->emplace_back();
  return &parts->back().text;
}

void RemoveIndentation(TemplateParts* parts) {
  std::size_t least = kAll;
  for (const TemplatePart& part : *parts) {
    if (!part.begins_line || IsBlank(part.text)) continue;
    least = std::min(least, IndentationOf(part.text, kAll).characters);
  }
  for (TemplatePart& part : *parts) {
    if (!part.begins_line || IsBlank(part.text)) continue;
    part.text.erase(0, IndentationOf(part.text, least).bytes);
  }
}

}  // namespace nomad_harvester::hcl
