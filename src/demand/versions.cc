// SPDX-License-Identifier: Apache-2.0
#include "versions.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nomad_harvester/base/parse.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"

namespace nomad_harvester::demand {
namespace {

// "v1.2.3-rc.1+build"
struct Version {
  std::vector<std::int64_t> segments{};  // three at least
  std::size_t given = 0;                 // how many of them the text has
  std::string prerelease{};
};

// Identifiers of letters, digits, '-' and '~', separated by dots.
bool AreIdentifiers(std::string_view text) {
  const std::vector<std::string> parts = absl::StrSplit(std::string(text), '.');
  return std::all_of(parts.begin(), parts.end(), [](const std::string& part) {
    return !part.empty() && std::all_of(part.begin(), part.end(), [](char c) {
      return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '~';
    });
  });
}

// A prerelease that begins with a letter needs no '-' before it, unless `strict`.
std::optional<Version> ParseVersion(std::string_view text, bool strict) {
  if (text.starts_with('v')) text.remove_prefix(1);
  Version version;
  for (;;) {
    const std::size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
    const auto segment = base::ParseInt(text.substr(0, end));
    if (!segment.ok() || end == 0) return std::nullopt;
    version.segments.push_back(*segment);
    text.remove_prefix(end);
    if (!text.starts_with('.')) break;
    text.remove_prefix(1);
  }
  version.given = version.segments.size();
  if (version.given < 3) version.segments.resize(3);
  const std::size_t plus = text.find('+');
  if (plus != std::string_view::npos) {
    if (!AreIdentifiers(text.substr(plus + 1))) return std::nullopt;
    text = text.substr(0, plus);
  }
  if (text.empty()) return version;
  const bool has_dash = text.front() == '-';
  if (has_dash) text.remove_prefix(1);
  if (!has_dash && strict) return std::nullopt;
  if (!AreIdentifiers(text)) return std::nullopt;
  version.prerelease = text;
  return version;
}

// One identifier of a prerelease; empty: there is none at this place.
int CompareIdentifiers(const std::string& a, const std::string& b) {
  if (a == b) return 0;
  const auto number_a = base::ParseInt(a);
  const auto number_b = base::ParseInt(b);
  if (a.empty()) return number_b.ok() ? -1 : 1;
  if (b.empty()) return number_a.ok() ? 1 : -1;
  if (number_a.ok() != number_b.ok()) return number_a.ok() ? -1 : 1;
  const bool greater = number_a.ok() ? *number_a > *number_b : a > b;
  return greater ? 1 : -1;
}

int ComparePrereleases(const std::string& a, const std::string& b) {
  if (a == b) return 0;
  if (a.empty()) return 1;
  if (b.empty()) return -1;
  std::vector<std::string> as = absl::StrSplit(a, '.');
  std::vector<std::string> bs = absl::StrSplit(b, '.');
  as.resize(std::max(as.size(), bs.size()));
  bs.resize(as.size());
  for (std::size_t i = 0; i < as.size(); ++i) {
    if (const int order = CompareIdentifiers(as[i], bs[i]); order != 0) return order;
  }
  return 0;
}

// Prereleases count only between versions with equally many segments.
int Compare(const Version& a, const Version& b) {
  if (a.segments == b.segments) return ComparePrereleases(a.prerelease, b.prerelease);
  std::vector<std::int64_t> as = a.segments;
  std::vector<std::int64_t> bs = b.segments;
  as.resize(std::max(as.size(), bs.size()));
  bs.resize(as.size());
  return as < bs ? -1 : as == bs ? 0 : 1;
}

// "~> 1.2.3": 1.2.4 but not 1.3.0, and "~> 1.2": 1.3 but not 2.0.
bool IsCompatible(const Version& version, const Version& wanted) {
  if (!wanted.prerelease.empty() && version.prerelease.empty()) return false;
  if (Compare(version, wanted) < 0) return false;
  if (wanted.segments.size() > version.segments.size()) return false;
  const auto end = wanted.segments.begin() + static_cast<std::ptrdiff_t>(wanted.given) - 1;
  if (!std::equal(wanted.segments.begin(), end, version.segments.begin())) return false;
  const std::size_t last = wanted.segments.size() - 1;
  return wanted.segments[last] <= version.segments[last];
}

bool PrereleasesMatch(const Version& version, const Version& wanted) {
  if (version.prerelease.empty()) return true;
  return !wanted.prerelease.empty() && wanted.segments == version.segments;
}

bool MeetsOne(const Version& version, std::string_view constraint, VersionRules rules) {
  constraint = base::TrimAsciiSpace(constraint);
  const std::size_t at = constraint.find_first_not_of("=!<>~");
  const std::string_view op = constraint.substr(0, std::min(at, constraint.size()));
  const bool strict = rules == VersionRules::kSemver;
  const auto wanted = ParseVersion(base::TrimAsciiSpace(constraint.substr(op.size())), strict);
  if (!wanted.has_value()) return false;
  const int order = Compare(version, *wanted);
  if (op.empty() || op == "=") return order == 0;
  if (op == "!=") return order != 0;
  if (!strict && !PrereleasesMatch(version, *wanted)) return false;
  if (op == ">") return order > 0;
  if (op == ">=") return order >= 0;
  if (op == "<") return order < 0;
  if (op == "<=") return order <= 0;
  return op == "~>" && !strict && IsCompatible(version, *wanted);
}

}  // namespace

bool MeetsVersions(std::string_view version, std::string_view constraints, VersionRules rules) {
  const auto parsed = ParseVersion(version, /*strict=*/false);
  if (!parsed.has_value()) return false;
  const std::vector<std::string> list = absl::StrSplit(std::string(constraints), ',');
  return std::all_of(list.begin(), list.end(), [&](const std::string& constraint) {
    return MeetsOne(*parsed, constraint, rules);
  });
}

}  // namespace nomad_harvester::demand
