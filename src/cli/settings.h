// SPDX-License-Identifier: Apache-2.0
// --set KEY=VALUE of the commands: the plugin block and a policy's target block in one. Private to
// module cli.
#ifndef NOMAD_HARVESTER_CLI_SETTINGS_H_
#define NOMAD_HARVESTER_CLI_SETTINGS_H_

#include <optional>
#include <string>
#include <vector>

#include "nomad_harvester/config/plugin_config.h"
#include "nomad_harvester/config/pool_policy.h"

#include "absl/status/statusor.h"

namespace nomad_harvester::cli {

struct Settings {
  config::PluginConfig plugin;
  // The namespace and, if it was given, the name of the pool.
  std::string ns;
  std::string pool;
  // There if more of it was given than that.
  std::optional<config::PoolPolicy> policy;
};

enum class PolicyUse {
  kRequired,  // a pool and the identity of its nodes
  kOptional,  // one pool with or without its policy, or every pool of a namespace
};

// INVALID_ARGUMENT with every problem at once, one line each. Which block a key belongs to follows
// from config::OptionTable. What a policy says of new VMs is checked as far as it is given, and may
// be left out: no command that uses this makes one.
absl::StatusOr<Settings> ReadSettings(const std::vector<std::string>& pairs, PolicyUse use,
                                      const config::Environment& environment,
                                      const config::StringMap& template_environment);

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_SETTINGS_H_
