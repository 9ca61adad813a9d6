// SPDX-License-Identifier: Apache-2.0
// Shortening strings for a log line.
#ifndef NOMAD_HARVESTER_SRC_LOG_TRUNCATE_H_
#define NOMAD_HARVESTER_SRC_LOG_TRUNCATE_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace nomad_harvester::log {

// The text, or its beginning and a mark that names how many bytes were there, at most max_bytes in
// all. Does not cut a UTF-8 character. max_bytes must leave room for the mark (48 bytes).
std::string Truncate(std::string_view text, std::size_t max_bytes);

}  // namespace nomad_harvester::log

#endif  // NOMAD_HARVESTER_SRC_LOG_TRUNCATE_H_
