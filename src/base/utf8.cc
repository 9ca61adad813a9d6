// SPDX-License-Identifier: Apache-2.0
#include "utf8.h"

#include <cstddef>
#include <string>
#include <string_view>

#include "nomad_harvester/base/json.h"

namespace nomad_harvester::base {
namespace {

struct Lead {
  std::size_t length = 0;
  // Bounds of the second byte: they exclude overlong forms, surrogates and values past U+10FFFF.
  unsigned char second_min = 0x80;
  unsigned char second_max = 0xbf;
};

Lead Classify(unsigned char lead) {
  if (lead < 0x80) return {1};
  if (lead >= 0xc2 && lead <= 0xdf) return {2};
  if (lead == 0xe0) return {3, 0xa0};
  if (lead == 0xed) return {3, 0x80, 0x9f};
  if (lead >= 0xe1 && lead <= 0xef) return {3};
  if (lead == 0xf0) return {4, 0x90};
  if (lead >= 0xf1 && lead <= 0xf3) return {4};
  if (lead == 0xf4) return {4, 0x80, 0x8f};
  return {};
}

}  // namespace

std::size_t Utf8CharacterLength(std::string_view text) {
  if (text.empty()) return 0;
  const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const Lead lead = Classify(byte(0));
  if (lead.length > text.size()) return 0;
  for (std::size_t i = 1; i < lead.length; ++i) {
    const unsigned char min = i == 1 ? lead.second_min : 0x80;
    const unsigned char max = i == 1 ? lead.second_max : 0xbf;
    if (byte(i) < min || byte(i) > max) return 0;
  }
  return lead.length;
}

std::string ToValidUtf8(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = Utf8CharacterLength(text);
    if (length == 0) {
      result += "\ufffd";
      text.remove_prefix(1);
    } else {
      result.append(text.substr(0, length));
      text.remove_prefix(length);
    }
  }
  return result;
}

}  // namespace nomad_harvester::base
