// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/base/parse.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <map>
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

namespace nomad_harvester::base {
namespace {

// strconv.Quote, except that printable non-ASCII characters, here all valid ones, stay
// (golang/go:src/strconv/quote.go).
std::string GoQuote(std::string_view text) {
  constexpr std::string_view kNamed = "\a\b\f\n\r\t\v\"\\";
  constexpr std::string_view kLetters = "abfnrtv\"\\";
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string quoted = "\"";
  while (!text.empty()) {
    const std::size_t length = std::max<std::size_t>(Utf8CharacterLength(text), 1);
    const auto byte = static_cast<unsigned char>(text.front());
    const std::size_t named = kNamed.find(text.front());
    if (named != std::string_view::npos) {
      quoted += {'\\', kLetters[named]};
    } else if (length > 1 || absl::ascii_isprint(byte)) {
      quoted.append(text.substr(0, length));
    } else {
      quoted += {'\\', 'x', kHex[byte >> 4], kHex[byte & 0xf]};
    }
    text.remove_prefix(length);
  }
  return quoted + '"';
}

// The syntax of Kubernetes names and labels
// (kubernetes/kubernetes:staging/src/k8s.io/apimachinery/pkg/util/validation/validation.go).
constexpr std::size_t kMaxLabelLength = 63;
constexpr std::size_t kMaxSubdomainLength = 253;

bool IsLowerAlphanumeric(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
bool IsAlphanumeric(char c) { return IsLowerAlphanumeric(c) || (c >= 'A' && c <= 'Z'); }

// "qualified name" without its prefix: [A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?
bool IsQualifiedName(std::string_view text) {
  return !text.empty() && text.size() <= kMaxLabelLength && IsAlphanumeric(text.front()) &&
         IsAlphanumeric(text.back()) && std::all_of(text.begin(), text.end(), [](char c) {
           return IsAlphanumeric(c) || c == '-' || c == '_' || c == '.';
         });
}

}  // namespace

absl::StatusOr<bool> ParseGoBool(std::string_view text) {
  constexpr std::array<std::string_view, 6> kTrue = {"1", "t", "T", "TRUE", "true", "True"};
  constexpr std::array<std::string_view, 6> kFalse = {"0", "f", "F", "FALSE", "false", "False"};
  if (std::find(kTrue.begin(), kTrue.end(), text) != kTrue.end()) return true;
  if (std::find(kFalse.begin(), kFalse.end(), text) != kFalse.end()) return false;
  return InvalidArgument("strconv.ParseBool: parsing " + GoQuote(text) + ": invalid syntax");
}

absl::StatusOr<std::int64_t> ParseInt(std::string_view text) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc::result_out_of_range && stop == end) {
    return InvalidArgument(GoQuote(text) + " is out of range");
  }
  if (error != std::errc{} || stop != end) {
    return InvalidArgument(GoQuote(text) + " is not an integer");
  }
  return value;
}

absl::StatusOr<std::vector<std::string>> ParseList(std::string_view text) {
  std::vector<std::string> elements;
  if (TrimAsciiSpace(text).empty()) return elements;
  while (true) {
    const std::size_t comma = text.find(',');
    const std::string_view element = TrimAsciiSpace(text.substr(0, comma));
    if (element.empty()) return InvalidArgument("the list has an empty element");
    elements.emplace_back(element);
    if (comma == std::string_view::npos) return elements;
    text.remove_prefix(comma + 1);
  }
}

absl::StatusOr<std::map<std::string, std::string>> ParseMap(std::string_view text) {
  NH_ASSIGN_OR_RETURN(const std::vector<std::string> elements, ParseList(text));
  std::map<std::string, std::string> result;
  for (const std::string_view element : elements) {
    const std::size_t equals = element.find('=');
    if (equals == std::string_view::npos) {
      return InvalidArgument(GoQuote(element) + " is not of the form key=value");
    }
    const std::string key(TrimAsciiSpace(element.substr(0, equals)));
    if (key.empty()) return InvalidArgument(GoQuote(element) + " has an empty key");
    const std::string value(TrimAsciiSpace(element.substr(equals + 1)));
    if (!result.emplace(key, value).second) {
      return InvalidArgument("the key " + GoQuote(key) + " is given twice");
    }
  }
  return result;
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
  while (true) {
    const std::size_t dot = text.find('.');
    // Kubernetes does not limit the length of the parts of a subdomain.
    if (!IsDnsLabel(text.substr(0, dot), kMaxSubdomainLength)) return false;
    if (dot == std::string_view::npos) return true;
    text.remove_prefix(dot + 1);
  }
}

bool IsLabelKey(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return IsQualifiedName(text);
  return IsDnsSubdomain(text.substr(0, slash)) && IsQualifiedName(text.substr(slash + 1));
}

bool IsLabelValue(std::string_view text) { return text.empty() || IsQualifiedName(text); }

// Optimal string alignment: three rows suffice, since a transposition refers to the row before the
// previous one. No row's least number is below those of both rows before it.
std::size_t EditDistance(std::string_view a, std::string_view b, std::size_t limit) {
  const std::size_t difference = a.size() > b.size() ? a.size() - b.size() : b.size() - a.size();
  if (difference >= limit) return limit;  // the distance is at least that
  const char* const a_text = a.data();
  const char* const b_text = b.data();
  const std::size_t width = b.size() + 1;
  std::vector<std::size_t> rows(3 * width);
  std::size_t* two_back = rows.data();
  std::size_t* previous = two_back + width;
  std::size_t* current = previous + width;
  for (std::size_t j = 0; j < width; ++j) current[j] = j;
  std::size_t previous_least = 0;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t* const oldest = two_back;
    two_back = previous;
    previous = current;
    current = oldest;
    std::size_t least = current[0] = i;
    for (std::size_t j = 1; j < width; ++j) {
      const char here = b_text[j - 1];
      std::size_t edits = previous[j - 1];
      if (a_text[i - 1] != here) {
        if (previous[j] < edits) edits = previous[j];
        if (current[j - 1] < edits) edits = current[j - 1];
        const bool swapped =
            i > 1 && j > 1 && a_text[i - 1] == b_text[j - 2] && a_text[i - 2] == here;
        if (swapped && two_back[j - 2] < edits) edits = two_back[j - 2];
        ++edits;
      }
      current[j] = edits;
      if (edits < least) least = edits;
    }
    if (std::min(least, previous_least) >= limit) return limit;
    previous_least = least;
  }
  return std::min(current[b.size()], limit);
}

std::optional<std::string> NearestName(std::string_view name,
                                       const std::vector<std::string>& candidates) {
  const std::size_t limit = std::clamp<std::size_t>(name.size() / 3, 1, 4);
  std::optional<std::string> nearest;
  std::size_t best = limit + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = EditDistance(name, candidate, best);
    if (distance < best) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

}  // namespace nomad_harvester::base
