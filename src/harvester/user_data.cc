// SPDX-License-Identifier: Apache-2.0
// Builds the user data of a VM from template and keys.
#include <string>
#include <vector>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/harvester/vm_spec.h"

#include "cloud_config.h"

namespace nomad_harvester::harvester {
namespace {

constexpr char kEmptyCloudConfig[] = "#cloud-config\n";

}  // namespace

absl::StatusOr<std::string> ComposeUserData(const std::string& source,
                                            const TemplateVariables& variables,
                                            const std::vector<std::string>& public_keys) {
  NH_ASSIGN_OR_RETURN(std::string text, RenderTemplate(source, variables));
  if (text.empty()) text = kEmptyCloudConfig;
  if (!IsCloudConfig(text)) {
    if (public_keys.empty()) return text;
    return base::InvalidArgument(
        "ssh_keys need user data that begins with #cloud-config, or none at all");
  }
  if (!public_keys.empty()) return AddAuthorizedKeys(text, public_keys);
  NH_RETURN_IF_ERROR(CheckCloudConfig(text));
  return text;
}

}  // namespace nomad_harvester::harvester
