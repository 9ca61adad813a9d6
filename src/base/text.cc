// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/base/text.h"

#include <algorithm>
#include <cstddef>

#include "nomad_harvester/base/status.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace nomad_harvester::base {

std::string FirstFew(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 5;
  const std::vector<std::string> first(
      names.begin(), names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), kMost)));
  return absl::StrJoin(first, ", ") +
         (names.size() > kMost ? " and " + std::to_string(names.size() - kMost) + " more" : "");
}

std::string WithoutName(std::string_view text, std::string_view name) {
  const auto is_end = [text](std::size_t at) {
    return at >= text.size() || !absl::ascii_isalnum(static_cast<unsigned char>(text[at]));
  };
  std::string rest;
  std::size_t from = 0;
  for (std::size_t at = 0; !name.empty();) {
    at = text.find(name, at);
    if (at == std::string_view::npos) break;
    const std::size_t end = at + name.size();
    if (is_end(end) && (at == 0 || is_end(at - 1))) {
      rest.append(text.substr(from, at - from)).append("…");
      from = end;
    }
    at = end;
  }
  return rest.append(text.substr(from));
}

std::string OneLine(std::string_view text) {
  return absl::StrReplaceAll(ToAbsl(text), {{":\n", ": "}, {"\n", "; "}});
}

const std::string& ValueOf(const std::map<std::string, std::string>& values, std::string_view key) {
  static const auto* const kNone = new std::string();
  if (values.empty()) return *kNone;
  const auto found = values.find(std::string(key));
  return found == values.end() ? *kNone : found->second;
}

}  // namespace nomad_harvester::base
