// SPDX-License-Identifier: Apache-2.0
// Checks whether the inline templates of a policy can work.
#ifndef NOMAD_HARVESTER_SCALING_TEMPLATE_CHECK_H_
#define NOMAD_HARVESTER_SCALING_TEMPLATE_CHECK_H_

#include <string>
#include <string_view>

#include "nomad_harvester/config/plugin_config.h"
#include "nomad_harvester/config/pool_policy.h"

#include "absl/status/status.h"

namespace nomad_harvester::scaling {

// Renders an inline template of a policy once with sample values; a config::TemplateCheck for one
// plugin configuration. Sends no request and reads no file. INVALID_ARGUMENT names line and column.
absl::Status CheckTemplate(const config::PluginConfig& plugin, const config::PoolPolicy& policy,
                           std::string_view key, const std::string& text);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_TEMPLATE_CHECK_H_
