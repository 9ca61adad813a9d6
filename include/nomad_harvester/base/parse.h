// SPDX-License-Identifier: Apache-2.0
// Small parsers for values that arrive as text.
#ifndef NOMAD_HARVESTER_BASE_PARSE_H_
#define NOMAD_HARVESTER_BASE_PARSE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace nomad_harvester::base {

// Go's strconv.ParseBool: 1 t T TRUE true True 0 f F FALSE false False. nullopt for anything else.
std::optional<bool> ParseGoBool(std::string_view text);

// A decimal integer without spaces or a leading '+'. INVALID_ARGUMENT otherwise and on overflow.
absl::StatusOr<std::int64_t> ParseInt(std::string_view text);

// A Kubernetes quantity (kubernetes/kubernetes:staging/src/k8s.io/apimachinery/pkg/api/resource/
// quantity.go) as whole base units, rounded up: "4Gi" = 4294967296, "500m" = 1, "1.5k" = 1500,
// "1e3" = 1000. INVALID_ARGUMENT for anything else, for a negative one and on overflow of int64.
absl::StatusOr<std::int64_t> ParseQuantity(std::string_view text);
// The shortest exact form with a binary suffix: 10737418240 = "10Gi", 1000 = "1000".
std::string FormatBinaryQuantity(std::int64_t value);

// Splits at commas and trims white space. An empty text is an empty list; an empty element is an
// error (INVALID_ARGUMENT).
absl::StatusOr<std::vector<std::string>> ParseList(std::string_view text);
// "k=v,k=v": splits at the first '='. A missing '=', an empty key or a duplicate key is an error.
absl::StatusOr<std::map<std::string, std::string>> ParseMap(std::string_view text);

// RFC 1123 DNS label: [a-z0-9]([-a-z0-9]*[a-z0-9])?, at most max_length characters.
bool IsDnsLabel(std::string_view text, std::size_t max_length = 63);
// RFC 1123 DNS subdomain: DNS labels joined by dots, at most 253 characters in all.
bool IsDnsSubdomain(std::string_view text);
// A Kubernetes label key ([prefix/]name) and label value.
bool IsLabelKey(std::string_view text);
bool IsLabelValue(std::string_view text);

// True if the text has no white space, control or non-ASCII characters.
bool IsVisibleAscii(std::string_view text);
std::string AsciiLower(std::string_view text);
bool EqualsIgnoreCase(std::string_view a, std::string_view b);
std::string_view TrimAsciiSpace(std::string_view text);

// Returns the Levenshtein distance, counting a transposition of neighbours as one edit.
std::size_t EditDistance(std::string_view a, std::string_view b);
// Returns the candidate nearest to `name`, if it is near enough to be a typing error (distance at
// most a third of the length, and at most 2); ties go to the first. Two real names may be as near
// as 3: circonus_api_app and circonus_api_url.
std::optional<std::string> NearestName(std::string_view name,
                                       const std::vector<std::string>& candidates);

}  // namespace nomad_harvester::base

#endif  // NOMAD_HARVESTER_BASE_PARSE_H_
