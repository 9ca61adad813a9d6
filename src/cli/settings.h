// SPDX-License-Identifier: Apache-2.0
// Combines the commands' --set KEY=VALUE, for both the plugin block and a policy's target block,
// with the agent's files. Private to module cli.
#ifndef NOMAD_HARVESTER_CLI_SETTINGS_H_
#define NOMAD_HARVESTER_CLI_SETTINGS_H_

#include <map>
#include <optional>
#include <set>
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
  // The policy defines new VMs, so that existing ones can be compared.
  bool defines_vms = false;
  // The command's environment, without variables overridden by --set.
  config::StringMap environment;
  // Both blocks as the agent would send them.
  config::StringMap plugin_block;
  config::StringMap policy_block;
  FileSettings files;                          // as they were given
  std::set<scaling::PoolKey> pools_of_files;   // on the same Harvester (PoolsOfHarvester)
  std::map<std::string, std::string> origins;  // of the blocks' keys that come from files
  // With PolicyUse::kChecked: keys of CAs whose file or directory does not exist, and why, with the
  // position. The plugin refuses them; here the system is contacted as if they were not given.
  std::vector<std::pair<std::string, std::string>> missing_cas = {};
};

enum class PolicyUse {
  kPool,      // only a pool's name and namespace; the other keys of a policy are not checked
  kRequired,  // a pool and the identity of its nodes
  kOptional,  // one pool with or without its policy, or every pool of a namespace
  kWhole,     // everything that a new VM needs, inline templates included
  kChecked,   // the same, but a missing CA file hides nothing else:
              // Settings::missing_cas
};

// True if `pairs` has the pool's name, so that no policy has to be found.
bool NamesPool(const std::vector<std::string>& pairs);
bool NamesNamespace(const std::vector<std::string>& pairs);

// The plugin block for a command without a policy, with warnings for the operator.
struct PluginSettings {
  config::StringMap block;
  std::vector<std::string> warnings;
  std::map<std::string, std::string> origins;  // of the block's keys that come from files
  config::StringMap environment;               // without variables overridden by --set
};
// `pairs`, in which the last one with a key wins, override `environment` and `files`.
// INVALID_ARGUMENT with every problem of their form, one line each; the values are not checked.
absl::StatusOr<PluginSettings> ReadPluginSettings(const std::vector<std::string>& pairs,
                                                  const FileSettings& files,
                                                  const config::StringMap& environment);

// Returns `problems`, whose lines begin with their keys, with the position appended to lines whose
// key is in `origins`.
std::string WithOrigins(const std::string& problems,
                        const std::map<std::string, std::string>& origins);

// INVALID_ARGUMENT with every problem, one line each, ending with the key's position if it comes
// from a file. config::OptionTable determines the block of a key in `pairs`, which overrides
// `files` and `environment`; the last pair with a key wins. Keys for new VMs are checked if given,
// and may be omitted unless the whole policy is required.
absl::StatusOr<Settings> ReadSettings(const std::vector<std::string>& pairs,
                                      const FileSettings& files, PolicyUse use,
                                      const config::StringMap& environment);

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_SETTINGS_H_
