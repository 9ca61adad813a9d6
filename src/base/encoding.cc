// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/base/encoding.h"

#include <cstdint>
#include <string>
#include <string_view>

#include "nomad_harvester/base/status.h"

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace nomad_harvester::base {

std::string Base64Encode(std::string_view bytes) { return absl::Base64Escape(ToAbsl(bytes)); }

// The message never quotes the text, which may be a key or a certificate.
absl::StatusOr<std::string> Base64Decode(std::string_view text) {
  std::string bytes;
  if (!absl::Base64Unescape(ToAbsl(text), &bytes)) {
    return InvalidArgument("not base64");
  }
  return bytes;
}

bool HoldsPem(std::string_view text) {
  // The second one is "-----BEGIN " in base64, without the bits that depend on the following text.
  return text.find("-----BEGIN ") != std::string_view::npos ||
         text.find("LS0tLS1CRUdJTi") != std::string_view::npos;
}

std::string UrlEscape(std::string_view text) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  constexpr std::string_view kUnreserved = "-._~";
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (absl::ascii_isalnum(byte) || kUnreserved.find(c) != std::string_view::npos) {
      result += c;
    } else {
      result += {'%', kHex[byte >> 4], kHex[byte & 0xf]};
    }
  }
  return result;
}

std::string QueryString(const QueryParameters& parameters) {
  std::string query;
  for (const auto& [key, value] : parameters) {
    if (value.empty()) continue;
    query += query.empty() ? "?" : "&";
    query += std::string(key) + "=" + (value == "*" ? value : UrlEscape(value));
  }
  return query;
}

std::string StableHash(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3;
  }
  return absl::StrCat(absl::Hex(hash, absl::kZeroPad16));
}

}  // namespace nomad_harvester::base
