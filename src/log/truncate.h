// SPDX-License-Identifier: Apache-2.0
// Shortens strings for a log line.
#ifndef NOMAD_HARVESTER_SRC_LOG_TRUNCATE_H_
#define NOMAD_HARVESTER_SRC_LOG_TRUNCATE_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace nomad_harvester::log {

// The text, or its beginning and a marker with the original number of bytes, at most max_bytes in
// total. Does not cut a UTF-8 character. max_bytes must leave room for the marker (48 bytes).
std::string Truncate(std::string_view text, std::size_t max_bytes);

}  // namespace nomad_harvester::log

#endif  // NOMAD_HARVESTER_SRC_LOG_TRUNCATE_H_
