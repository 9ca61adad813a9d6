// SPDX-License-Identifier: Apache-2.0
// The parts of a YAML document that are needed to add keys to it.
#ifndef NOMAD_HARVESTER_SRC_HARVESTER_CLOUD_CONFIG_OUTLINE_H_
#define NOMAD_HARVESTER_SRC_HARVESTER_CLOUD_CONFIG_OUTLINE_H_

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace nomad_harvester::harvester {

inline constexpr char kAuthorizedKeysMember[] = "ssh_authorized_keys";

// A position in the text; line and column from 0, columns in bytes.
struct TextPosition {
  std::size_t line = 0;
  std::size_t column = 0;
  friend bool operator==(const TextPosition&, const TextPosition&) = default;
};

struct CloudConfigOutline {
  bool empty = false;  // no document, or one that is null
  bool flow = false;   // { "a": … }
  TextPosition begin;
  std::vector<std::string> members;  // top-level keys, in order; "" if not a scalar
  // The scalars of top-level keys, and those in the mapping "network" as "network.KEY"; "" if not a
  // scalar.
  std::map<std::string, std::string> values;

  // The top-level list ssh_authorized_keys.
  bool has_keys = false;
  bool keys_are_list = false;
  bool keys_flow = false;
  TextPosition keys_begin;
  std::vector<std::string> keys;  // its scalars
};

// Reads events only, so that deep nesting or nested aliases cost no more than the length of the
// text. INVALID_ARGUMENT, with `what` and the line, for text that is not YAML, not a mapping or
// more than one document.
absl::StatusOr<CloudConfigOutline> ReadOutline(const std::string& text,
                                               const std::string& what = "#cloud-config");

}  // namespace nomad_harvester::harvester

#endif  // NOMAD_HARVESTER_SRC_HARVESTER_CLOUD_CONFIG_OUTLINE_H_
