// SPDX-License-Identifier: Apache-2.0
#include "text.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include <yaml-cpp/yaml.h>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/secret.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"
#include "terminal.h"

namespace nomad_harvester::cli {
namespace {

constexpr char kEmptyCell[] = "-";

using Json = nlohmann::ordered_json;
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

// Returns valid UTF-8, because texts of other systems may be anything.
Json WithoutSecretsIn(Json document) {
  if (document.is_string()) {
    return base::WithoutSecrets(base::ToValidUtf8(document.get_ref<const std::string&>()));
  }
  if (document.is_structured()) {
    for (Json& value : document) value = WithoutSecretsIn(std::move(value));
  }
  return document;
}

// True if every reader takes the unquoted text for a text: it begins with a letter, has no YAML
// indicator, and YAML 1.1 does not read it as a bool or null.
bool IsPlain(const std::string& text) {
  constexpr std::array<std::string_view, 9> kWords = {"true", "false", "yes", "no", "on",
                                                      "off",  "null",  "y",   "n"};
  const bool harmless = std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
           std::string_view("._/-").find(c) != std::string_view::npos;
  });
  return harmless && !text.empty() &&
         absl::ascii_isalpha(static_cast<unsigned char>(text.front())) &&
         std::find(kWords.begin(), kWords.end(), absl::AsciiStrToLower(text)) == kWords.end();
}

// yaml-cpp leaves "12" and "yes" unquoted, which other readers take for a number and a bool.
void WriteText(const std::string& text, YAML::Emitter& out) {
  if (!IsPlain(text)) out << YAML::DoubleQuoted;
  out << text;
}

void Write(const Json& value, YAML::Emitter& out) {
  if (value.is_structured() && value.empty()) out << YAML::Flow;
  if (value.is_array()) {
    out << YAML::BeginSeq;
    for (const Json& item : value) Write(item, out);
    out << YAML::EndSeq;
  } else if (value.is_object()) {
    out << YAML::BeginMap;
    for (const auto& [key, member] : value.items()) {
      out << YAML::Key;
      WriteText(key, out);
      out << YAML::Value;
      Write(member, out);
    }
    out << YAML::EndMap;
  } else if (value.is_string()) {
    WriteText(value.get_ref<const std::string&>(), out);
  } else if (value.is_null()) {
    out << YAML::Null;
  } else {
    out << value.dump();  // numbers, true and false are valid YAML
  }
}

}  // namespace

std::string Printable(std::string_view text) {
  return base::EscapeControls(base::WithoutSecrets(std::string(text)));
}

std::string PrintableLines(std::string_view lines) {
  std::string text;
  for (std::size_t begin = 0; begin < lines.size();) {
    const std::size_t end = std::min(lines.find('\n', begin), lines.size());
    text += Printable(lines.substr(begin, end - begin)) + "\n";
    begin = end + 1;
  }
  return text;
}

std::string Counted(std::int64_t count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

bool MayBeSecret(std::string_view word) {
  // Tokens of Kubernetes, Rancher, Nomad and Vault are longer.
  constexpr std::size_t kLongest = 16;
  return word.size() > kLongest || word.find('=') != std::string_view::npos;
}

std::string GivenWord(std::string_view word) {
  return MayBeSecret(word) ? "what was given" : "\"" + Printable(word) + "\"";
}

std::string Got(std::string_view word) {
  return MayBeSecret(word) ? "" : ", got " + GivenWord(word);
}

std::string DidYouMean(const std::optional<std::string>& nearest) {
  return nearest.has_value() ? "; did you mean " + Printable(*nearest) + "?" : "";
}

std::string PrintableJson(Json document) {
  return WithoutSecretsIn(std::move(document)).dump(2, ' ', true, Json::error_handler_t::replace) +
         "\n";
}

std::string PrintableYaml(Json document) { return ToYaml(WithoutSecretsIn(std::move(document))); }

std::string PrintableDocument(const std::string& output, Json document) {
  return output == "yaml" ? PrintableYaml(std::move(document)) : PrintableJson(std::move(document));
}

std::string ToYaml(const Json& document) {
  YAML::Emitter out;
  out.SetOutputCharset(YAML::EscapeNonAscii);
  Write(document, out);
  return std::string(out.c_str()) + "\n";
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
