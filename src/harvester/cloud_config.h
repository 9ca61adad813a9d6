// SPDX-License-Identifier: Apache-2.0
// User data that says #cloud-config: checked to be YAML, and given more SSH keys.
#ifndef NOMAD_HARVESTER_SRC_HARVESTER_CLOUD_CONFIG_H_
#define NOMAD_HARVESTER_SRC_HARVESTER_CLOUD_CONFIG_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace nomad_harvester::harvester {

// Whether cloud-init takes the text for a cloud-config
// (canonical/cloud-init:cloudinit/handlers/__init__.py, type_from_starts_with: white space before
// it and case do not count).
bool IsCloudConfig(std::string_view text);

// INVALID_ARGUMENT unless the text is one YAML document, a mapping or nothing at all. The error
// names the line, never the content: user data holds secrets.
absl::Status CheckCloudConfig(const std::string& text);

// The text with the keys that it does not have yet in its top-level list ssh_authorized_keys; not a
// byte of the rest changes, comments included. Without a missing key the text itself.
// INVALID_ARGUMENT if they cannot be added: it is not a mapping, or its ssh_authorized_keys is
// not a list.
absl::StatusOr<std::string> AddAuthorizedKeys(const std::string& text,
                                              const std::vector<std::string>& keys);

}  // namespace nomad_harvester::harvester

#endif  // NOMAD_HARVESTER_SRC_HARVESTER_CLOUD_CONFIG_H_
