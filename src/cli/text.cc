// SPDX-License-Identifier: Apache-2.0
#include "text.h"

#include <algorithm>
#include <cstddef>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/secret.h"

namespace nomad_harvester::cli {
namespace {

// Counts characters, not bytes; none of those used here is wider than one column.
std::size_t WidthOf(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U;
  }));
}

}  // namespace

std::string Printable(std::string_view text) {
  return base::EscapeControls(base::WithoutSecrets(std::string(text)));
}

std::string Table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::vector<std::string>> cells = rows;
  std::vector<std::size_t> widths;
  for (auto& row : cells) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) {
      row[i] = row[i].empty() ? "-" : Printable(row[i]);
      widths[i] = std::max(widths[i], WidthOf(row[i]));
    }
  }
  std::string text;
  for (const auto& row : cells) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      text += row[i];
      if (i + 1 < row.size()) text.append(widths[i] - WidthOf(row[i]) + 2, ' ');
    }
    text += '\n';
  }
  return text;
}

}  // namespace nomad_harvester::cli
