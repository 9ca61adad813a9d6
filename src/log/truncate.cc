// SPDX-License-Identifier: Apache-2.0
#include "truncate.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace nomad_harvester::log {

std::string Truncate(std::string_view text, std::size_t max_bytes) {
  if (text.size() <= max_bytes) return std::string(text);
  const std::string mark = "... (" + std::to_string(text.size()) + " bytes)";
  std::size_t length = max_bytes - mark.size();
  // Skips continuation bytes backwards; a character has at most three of them.
  for (int i = 0; i < 3 && length > 0; ++i) {
    if ((static_cast<unsigned char>(text[length]) & 0xc0) != 0x80) break;
    --length;
  }
  return std::string(text.substr(0, length)) + mark;
}

}  // namespace nomad_harvester::log
