// SPDX-License-Identifier: Apache-2.0
// Valid UTF-8 sequences, after table 3-7 of the Unicode standard.
#ifndef NOMAD_HARVESTER_SRC_BASE_UTF8_H_
#define NOMAD_HARVESTER_SRC_BASE_UTF8_H_

#include <cstddef>
#include <string_view>

namespace nomad_harvester::base {

// Length of the well-formed character at the front of `text`; 0 if there is none.
std::size_t Utf8CharacterLength(std::string_view text);

}  // namespace nomad_harvester::base

#endif  // NOMAD_HARVESTER_SRC_BASE_UTF8_H_
