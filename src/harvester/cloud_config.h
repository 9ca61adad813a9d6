// SPDX-License-Identifier: Apache-2.0
// User data that begins with #cloud-config, and the parts of a YAML document that are needed to add
// SSH keys to it.
#ifndef NOMAD_HARVESTER_HARVESTER_CLOUD_CONFIG_H_
#define NOMAD_HARVESTER_HARVESTER_CLOUD_CONFIG_H_

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace nomad_harvester::harvester {

// True if cloud-init treats the text as a cloud-config
// (canonical/cloud-init:cloudinit/handlers/__init__.py, type_from_starts_with: leading white space
// and case are ignored).
bool IsCloudConfig(std::string_view text);

// Adds the missing keys to the top-level list ssh_authorized_keys. Everything else stays byte for
// byte, comments included; if no key is missing, the text is returned unchanged. INVALID_ARGUMENT
// unless the text is one YAML document that is a mapping or empty, or if its ssh_authorized_keys is
// not a list. The error has the line, never the content: user data contains secrets.
absl::StatusOr<std::string> AddAuthorizedKeys(const std::string& text,
                                              const std::vector<std::string>& keys);

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
// text. INVALID_ARGUMENT, with `what` and the line, for text that is not YAML, not a mapping, more
// than one document, or with two equal top-level keys.
absl::StatusOr<CloudConfigOutline> ReadOutline(const std::string& text,
                                               const std::string& what = "#cloud-config");

}  // namespace nomad_harvester::harvester

#endif  // NOMAD_HARVESTER_HARVESTER_CLOUD_CONFIG_H_
