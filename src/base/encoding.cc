// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/base/encoding.h"

#include <cstdint>
#include <string>
#include <string_view>

#include "nomad_harvester/base/status.h"

#include "absl/strings/escaping.h"

namespace nomad_harvester::base {
namespace {

bool IsUnreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

}  // namespace

std::string Base64Encode(std::string_view bytes) { return absl::Base64Escape(ToAbsl(bytes)); }

// The message never quotes the text: it may be a key or a certificate.
absl::StatusOr<std::string> Base64Decode(std::string_view text) {
  std::string bytes;
  if (!absl::Base64Unescape(ToAbsl(text), &bytes)) {
    return InvalidArgument("not base64");
  }
  return bytes;
}

std::string UrlEscape(std::string_view text) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string result;
  result.reserve(text.size());
  for (const char c : text) {
    if (IsUnreserved(c)) {
      result += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    result += '%';
    result += kHex[byte >> 4];
    result += kHex[byte & 0xf];
  }
  return result;
}

std::string StableHash(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3;
  }
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string result;
  for (int shift = 60; shift >= 0; shift -= 4) result += kHex[hash >> shift & 0xf];
  return result;
}

}  // namespace nomad_harvester::base
