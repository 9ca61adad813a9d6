// SPDX-License-Identifier: Apache-2.0
#include "text.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/secret.h"

#include "nlohmann/json.hpp"
#include "terminal.h"

namespace nomad_harvester::cli {
namespace {

constexpr char kEmptyCell[] = "-";

using Rows = std::vector<std::vector<std::string>>;

std::string Blocks(const Rows& rows) {
  std::size_t column = 0;
  for (const std::string& heading : rows[0]) column = std::max(column, DisplayWidth(heading) + 3);
  std::string text;
  for (std::size_t row = 1; row < rows.size(); ++row) {
    if (row > 1) text += '\n';
    for (std::size_t i = 0; i < rows[row].size(); ++i) {
      if (rows[row][i] == kEmptyCell) continue;
      text += rows[0][i] + ":";
      text.append(column - DisplayWidth(rows[0][i]) - 1, ' ');
      text += rows[row][i] + "\n";
    }
  }
  return text;
}

}  // namespace

std::string Printable(std::string_view text) {
  return base::EscapeControls(base::WithoutSecrets(std::string(text)));
}

nlohmann::ordered_json WithoutSecretsIn(nlohmann::ordered_json document) {
  if (document.is_string()) return base::WithoutSecrets(document.get<std::string>());
  if (document.is_structured()) {
    for (nlohmann::ordered_json& value : document) value = WithoutSecretsIn(std::move(value));
  }
  return document;
}

std::string PrintableJson(nlohmann::ordered_json document) {
  return WithoutSecretsIn(std::move(document))
             .dump(2, ' ', true, nlohmann::ordered_json::error_handler_t::replace) +
         "\n";
}

std::string ShortId(std::string_view id) {
  constexpr std::size_t kLength = 8;
  return std::string(id.substr(0, kLength));
}

std::string Table(const Rows& rows, std::size_t width) {
  Rows cells = rows;
  std::vector<std::size_t> widths;
  for (auto& row : cells) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) {
      row[i] = row[i].empty() ? kEmptyCell : Printable(row[i]);
      widths[i] = std::max(widths[i], DisplayWidth(row[i]));
    }
  }
  std::string text;
  std::size_t widest = 0;
  for (const auto& row : cells) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line.append(widths[i] - DisplayWidth(row[i]) + 2, ' ');
    }
    widest = std::max(widest, DisplayWidth(line));
    text += line + "\n";
  }
  return width > 0 && widest > width ? Blocks(cells) : text;
}

}  // namespace nomad_harvester::cli
