// SPDX-License-Identifier: Apache-2.0
// The commands' --set KEY=VALUE, the plugin block and a policy's target block in one, on top of the
// agent's files. Private to module cli.
#ifndef NOMAD_HARVESTER_CLI_SETTINGS_H_
#define NOMAD_HARVESTER_CLI_SETTINGS_H_

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nomad_harvester/config/plugin_config.h"
#include "nomad_harvester/config/pool_policy.h"

#include "absl/status/statusor.h"
#include "operator_files.h"

namespace nomad_harvester::cli {

struct Settings {
  config::PluginConfig plugin;
  // The namespace and, if given, the name of the pool.
  std::string ns;
  std::string pool;
  // Set if more of the policy was given than these two.
  std::optional<config::PoolPolicy> policy;
  // The policy says how new VMs are made, so that existing ones can be compared.
  bool tells_vms = false;
  // What the command was given, without what --set replaces.
  config::StringMap environment;
  // Both blocks as the agent would send them.
  config::StringMap plugin_block;
  config::StringMap policy_block;
  FileSettings files;  // as they were given
  // With PolicyUse::kChecked: keys of CAs whose file or directory does not exist, and why, with the
  // place. The plugin refuses them; here its system is asked as if they were not given.
  std::vector<std::pair<std::string, std::string>> missing_cas = {};
};

enum class PolicyUse {
  kPool,      // a pool: its name and namespace alone
  kRequired,  // a pool and the identity of its nodes
  kOptional,  // one pool with or without its policy, or every pool of a namespace
  kWhole,     // everything that a new VM needs, inline templates included
  kChecked,   // the same, but a file of CAs that is missing hides nothing else:
              // Settings::missing_cas
};

// Whether `pairs` has the pool's name, so that no policy has to be looked for.
bool NamesPool(const std::vector<std::string>& pairs);

// The plugin's block of a command that has no policy, and what its operator should know about it.
struct PluginSettings {
  config::StringMap block;
  std::vector<std::string> warnings;
  std::map<std::string, std::string> origins;  // of the block's keys that come from files
  config::StringMap environment;               // without what --set replaces
};
// `pairs`, of which the last one of a key counts, on top of `environment` and `files`.
// INVALID_ARGUMENT with every problem of their form, one line each; the values are not checked.
absl::StatusOr<PluginSettings> ReadPluginSettings(const std::vector<std::string>& pairs,
                                                  const FileSettings& files,
                                                  const config::StringMap& environment);

// `problems`, of which each line begins with its key, with the key's place behind those whose key
// is in `origins`.
std::string WithOrigins(const std::string& problems,
                        const std::map<std::string, std::string>& origins);

// INVALID_ARGUMENT with every problem, one line each; that of a key from a file ends with the place
// of the key. config::OptionTable determines the block of a key of `pairs`, which replaces that of
// `files` and `environment`; of two of one key the last one counts. Keys for new VMs are checked if
// given, and may be omitted unless the policy is needed whole.
absl::StatusOr<Settings> ReadSettings(const std::vector<std::string>& pairs,
                                      const FileSettings& files, PolicyUse use,
                                      const config::StringMap& environment);

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_SETTINGS_H_
