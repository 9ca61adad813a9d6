// SPDX-License-Identifier: Apache-2.0
// The Raft index at which Nomad replied.
#ifndef NOMAD_HARVESTER_SRC_NOMAD_REPLY_INDEX_H_
#define NOMAD_HARVESTER_SRC_NOMAD_REPLY_INDEX_H_

#include <charconv>
#include <cstdint>
#include <string>

#include "nomad_harvester/http/message.h"

namespace nomad_harvester::nomad {

// X-Nomad-Index; 0 if it is missing or not a number.
inline std::uint64_t ReplyIndex(const http::HttpResponse& response) {
  const std::string text = response.headers.Find("X-Nomad-Index").value_or("");
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end ? value : 0;
}

}  // namespace nomad_harvester::nomad

#endif  // NOMAD_HARVESTER_SRC_NOMAD_REPLY_INDEX_H_
