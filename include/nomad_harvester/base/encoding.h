// SPDX-License-Identifier: Apache-2.0
// Base64, URL escapes and a stable hash.
#ifndef NOMAD_HARVESTER_BASE_ENCODING_H_
#define NOMAD_HARVESTER_BASE_ENCODING_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace nomad_harvester::base {

std::string Base64Encode(std::string_view bytes);
// Decodes the standard alphabet, padded or not; skips white space. INVALID_ARGUMENT otherwise.
absl::StatusOr<std::string> Base64Decode(std::string_view text);

// True if the text contains the beginning of a PEM block, plain or base64-encoded, which may be a
// private key.
bool HoldsPem(std::string_view text);

// Escapes everything except RFC 3986's unreserved characters.
std::string UrlEscape(std::string_view text);
// Returns "?key=value&…" with escaped values, or "" if there are none. Omits empty values. The
// value "*" is a wildcard and is not escaped, which RFC 3986 3.4 allows in a query.
using QueryParameters = std::vector<std::pair<std::string_view, std::string>>;
std::string QueryString(const QueryParameters& parameters);

// A stable 64-bit FNV-1a digest as 16 hex digits: for change detection, not for security.
std::string StableHash(std::string_view text);

}  // namespace nomad_harvester::base

#endif  // NOMAD_HARVESTER_BASE_ENCODING_H_
