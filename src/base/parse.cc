// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/base/parse.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/status.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"

namespace nomad_harvester::base {
namespace {

// The syntax of Kubernetes names and labels
// (kubernetes/kubernetes:staging/src/k8s.io/apimachinery/pkg/util/validation/validation.go).
constexpr std::size_t kMaxLabelLength = 63;
constexpr std::size_t kMaxSubdomainLength = 253;

bool IsLowerAlphanumeric(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
bool IsAlphanumeric(char c) { return IsLowerAlphanumeric(c) || (c >= 'A' && c <= 'Z'); }

// A "qualified name" without its prefix: [A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?
bool IsQualifiedName(std::string_view text) {
  return !text.empty() && text.size() <= kMaxLabelLength && IsAlphanumeric(text.front()) &&
         IsAlphanumeric(text.back()) && std::all_of(text.begin(), text.end(), [](char c) {
           return IsAlphanumeric(c) || c == '-' || c == '_' || c == '.';
         });
}

}  // namespace

std::optional<bool> ParseGoBool(std::string_view text) {
  constexpr std::array<std::string_view, 6> kTrue = {"1", "t", "T", "TRUE", "true", "True"};
  constexpr std::array<std::string_view, 6> kFalse = {"0", "f", "F", "FALSE", "false", "False"};
  if (std::find(kTrue.begin(), kTrue.end(), text) != kTrue.end()) return true;
  if (std::find(kFalse.begin(), kFalse.end(), text) != kFalse.end()) return false;
  return std::nullopt;
}

absl::StatusOr<std::int64_t> ParseInt(std::string_view text) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc::result_out_of_range && stop == end) {
    return InvalidArgument(Quoted(text) + " is out of range");
  }
  if (error != std::errc{} || stop != end) {
    return InvalidArgument(Quoted(text) + " is not an integer");
  }
  return value;
}

absl::StatusOr<std::vector<std::string>> ParseList(std::string_view text) {
  std::vector<std::string> elements;
  if (TrimAsciiSpace(text).empty()) return elements;
  for (const absl::string_view part : absl::StrSplit(ToAbsl(text), ',')) {
    elements.emplace_back(TrimAsciiSpace(ToStd(part)));
    if (elements.back().empty()) return InvalidArgument("the list has an empty element");
  }
  return elements;
}

absl::StatusOr<std::map<std::string, std::string>> ParseMap(std::string_view text) {
  NH_ASSIGN_OR_RETURN(const std::vector<std::string> elements, ParseList(text));
  std::map<std::string, std::string> result;
  for (const std::string_view element : elements) {
    const std::size_t equals = element.find('=');
    if (equals == std::string_view::npos) {
      return InvalidArgument(Quoted(element) + " is not of the form key=value");
    }
    const std::string key(TrimAsciiSpace(element.substr(0, equals)));
    if (key.empty()) return InvalidArgument(Quoted(element) + " has an empty key");
    const std::string value(TrimAsciiSpace(element.substr(equals + 1)));
    if (!result.emplace(key, value).second) {
      return InvalidArgument("the key " + Quoted(key) + " is given twice");
    }
  }
  return result;
}

bool IsVisibleAscii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < '\x7f'; });
}

std::string AsciiLower(std::string_view text) { return absl::AsciiStrToLower(ToAbsl(text)); }

bool EqualsIgnoreCase(std::string_view a, std::string_view b) {
  return absl::EqualsIgnoreCase(ToAbsl(a), ToAbsl(b));
}

std::string_view TrimAsciiSpace(std::string_view text) {
  return ToStd(absl::StripAsciiWhitespace(ToAbsl(text)));
}

bool IsDnsLabel(std::string_view text, std::size_t max_length) {
  return !text.empty() && text.size() <= max_length && IsLowerAlphanumeric(text.front()) &&
         IsLowerAlphanumeric(text.back()) && std::all_of(text.begin(), text.end(), [](char c) {
           return IsLowerAlphanumeric(c) || c == '-';
         });
}

bool IsDnsSubdomain(std::string_view text) {
  if (text.size() > kMaxSubdomainLength) return false;
  const std::vector<absl::string_view> parts = absl::StrSplit(ToAbsl(text), '.');
  // Kubernetes does not limit the length of a subdomain's parts.
  return std::all_of(parts.begin(), parts.end(), [](absl::string_view part) {
    return IsDnsLabel(ToStd(part), kMaxSubdomainLength);
  });
}

bool IsLabelKey(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return IsQualifiedName(text);
  return IsDnsSubdomain(text.substr(0, slash)) && IsQualifiedName(text.substr(slash + 1));
}

bool IsLabelValue(std::string_view text) { return text.empty() || IsQualifiedName(text); }

// Optimal string alignment. Three rows suffice, because a transposition refers to the row before
// the previous one.
std::size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> two_back(b.size() + 1);
  std::vector<std::size_t> previous(b.size() + 1);
  std::vector<std::size_t> current(b.size() + 1);
  std::iota(current.begin(), current.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::swap(two_back, previous);
    std::swap(previous, current);
    current[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      current[j] = std::min({replaced, previous[j] + 1, current[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        current[j] = std::min(current[j], two_back[j - 2] + 1);
      }
    }
  }
  return current[b.size()];
}

std::optional<std::string> NearestName(std::string_view name,
                                       const std::vector<std::string>& candidates) {
  std::optional<std::string> nearest;
  std::size_t best = std::min<std::size_t>(name.size() / 3, 2) + 1;
  for (const std::string& candidate : candidates) {
    const auto [shorter, longer] = std::minmax({name.size(), candidate.size()});
    if (longer - shorter >= best) continue;  // the distance is at least that
    const std::size_t distance = EditDistance(name, candidate);
    if (distance >= best) continue;
    best = distance;
    nearest = candidate;
  }
  return nearest;
}

}  // namespace nomad_harvester::base
