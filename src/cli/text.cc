// SPDX-License-Identifier: Apache-2.0
#include "text.h"

#include <algorithm>
#include <cstddef>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/secret.h"

#include "terminal.h"

namespace nomad_harvester::cli {

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
      widths[i] = std::max(widths[i], DisplayWidth(row[i]));
    }
  }
  std::string text;
  for (const auto& row : cells) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      text += row[i];
      if (i + 1 < row.size()) text.append(widths[i] - DisplayWidth(row[i]) + 2, ' ');
    }
    text += '\n';
  }
  return text;
}

}  // namespace nomad_harvester::cli
