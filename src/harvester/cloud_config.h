// SPDX-License-Identifier: Apache-2.0
// User data that begins with #cloud-config: checks that it is YAML and adds SSH keys.
#ifndef NOMAD_HARVESTER_SRC_HARVESTER_CLOUD_CONFIG_H_
#define NOMAD_HARVESTER_SRC_HARVESTER_CLOUD_CONFIG_H_

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

}  // namespace nomad_harvester::harvester

#endif  // NOMAD_HARVESTER_SRC_HARVESTER_CLOUD_CONFIG_H_
