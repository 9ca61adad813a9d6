// SPDX-License-Identifier: Apache-2.0
// The parts of a YAML document that matter when keys are added to it.
#ifndef NOMAD_HARVESTER_SRC_HARVESTER_CLOUD_CONFIG_OUTLINE_H_
#define NOMAD_HARVESTER_SRC_HARVESTER_CLOUD_CONFIG_OUTLINE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace nomad_harvester::harvester {

inline constexpr char kAuthorizedKeysMember[] = "ssh_authorized_keys";

// Where something begins; both from 0, columns in bytes.
struct TextPosition {
  std::size_t line = 0;
  std::size_t column = 0;
  friend bool operator==(const TextPosition&, const TextPosition&) = default;
};

struct CloudConfigOutline {
  bool empty = false;  // no document, or one that is null
  bool flow = false;   // { "a": … }
  TextPosition begin;
  std::vector<std::string> members;  // names of the top-level members, in order; "" for no scalar

  // The top-level list ssh_authorized_keys.
  bool has_keys = false;
  bool keys_are_list = false;
  bool keys_flow = false;
  TextPosition keys_begin;
  std::vector<std::string> keys;  // its scalars
};

// Reads events only, so that neither deep nesting nor an alias that doubles itself costs more than
// the length of the text. INVALID_ARGUMENT, with the line, for what is not YAML, no mapping or more
// than one document.
absl::StatusOr<CloudConfigOutline> ReadOutline(const std::string& text);

}  // namespace nomad_harvester::harvester

#endif  // NOMAD_HARVESTER_SRC_HARVESTER_CLOUD_CONFIG_OUTLINE_H_
