#include "nomad_harvester/base/encoding.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "nomad_harvester/base/status.h"

namespace nomad_harvester::base {
namespace {

constexpr std::string_view kBase64 =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

bool IsUnreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

}  // namespace

std::string Base64Encode(std::string_view bytes) {
  std::string result;
  result.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t j = 0; j < 3; ++j) {
      group <<= 8;
      if (i + j < bytes.size()) group |= static_cast<unsigned char>(bytes[i + j]);
    }
    const std::size_t present = bytes.size() - i;
    result += kBase64[group >> 18 & 63];
    result += kBase64[group >> 12 & 63];
    result += present > 1 ? kBase64[group >> 6 & 63] : '=';
    result += present > 2 ? kBase64[group & 63] : '=';
  }
  return result;
}

// Messages never quote the text: it may be a key or a certificate.
absl::StatusOr<std::string> Base64Decode(std::string_view text) {
  std::string result;
  std::uint32_t group = 0;
  std::size_t digits = 0;
  std::size_t padding = 0;
  for (const char c : text) {
    if (IsSpace(c)) continue;
    if (c == '=') {
      ++padding;
      continue;
    }
    const std::size_t value = kBase64.find(c);
    if (value == std::string_view::npos) return InvalidArgument("not base64: invalid character");
    if (padding > 0) return InvalidArgument("not base64: a character after the padding");
    group = group << 6 | static_cast<std::uint32_t>(value);
    if (++digits % 4 == 0) {
      for (const int shift : {16, 8, 0}) result += static_cast<char>(group >> shift & 0xff);
      group = 0;
    }
  }
  const std::size_t rest = digits % 4;
  if (rest == 1) return InvalidArgument("not base64: incomplete last group");
  if (padding > 0 && (rest == 0 || rest + padding != 4)) {
    return InvalidArgument("not base64: wrong padding");
  }
  if (rest >= 2) result += static_cast<char>(group >> (rest == 2 ? 4 : 10) & 0xff);
  if (rest == 3) result += static_cast<char>(group >> 2 & 0xff);
  return result;
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
