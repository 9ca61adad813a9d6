// SPDX-License-Identifier: Apache-2.0
// --agent-config, --policy and --policy-name: the plugin's block and a policy's target block from
// the files of the autoscaler's agent. Private to module cli.
#ifndef NOMAD_HARVESTER_CLI_OPERATOR_FILES_H_
#define NOMAD_HARVESTER_CLI_OPERATOR_FILES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "nomad_harvester/config/plugin_config.h"
#include "nomad_harvester/scaling/snapshot.h"

#include "absl/status/statusor.h"
#include "agent_files.h"

namespace nomad_harvester::cli {

// Paths of files or directories; empty: not given.
struct OperatorFiles {
  std::string agent_config;
  std::string policy;
  std::string policy_name;
  // The command needs a policy: without `policy`, that of the agent's policy.dir. A policy_name
  // needs one, too.
  bool needs_policy = false;
};

// A check of the chosen policy, and where the agent sends its query.
struct MetricQuery {
  std::string policy;
  bool from_zero = false;  // the policy is of type "cluster", and its min is 0
  PolicyCheck check;
  // Its source; unset: the agent's configuration has none of this name, or was not given.
  std::optional<AgentPlugin> apm;
  bool apms_are_known = false;
};

// How many VMs the agent wants at least and at most.
struct CountLimits {
  std::string policy;  // "policy "web" (web.hcl:1:1)"
  std::int64_t min = 0;
  std::int64_t max = 0;
};

// What the agent would hand to the plugin, and what it would ask before.
struct FileSettings {
  config::StringMap plugin;
  config::StringMap policy;
  // Key -> "agent.hcl:12:5". No key is in both maps.
  std::map<std::string, std::string> origins;
  std::vector<std::string> warnings;
  std::vector<MetricQuery> queries;
  // Why the agent does not scale by the policy, as of FilePolicy, and by its strategies.
  std::vector<std::string> refusals;
  // Of an enabled policy: the agent enforces them. Unset: there is none.
  std::optional<CountLimits> limits = {};
  PluginDirectory plugin_dir;  // of the agent's configuration
  // The pools of all policies that were read, are enabled and reach this plugin.
  std::set<scaling::PoolKey> pools;
};

// Reads like the agent (hashicorp/nomad-autoscaler:agent/config/config.go, Load;
// policy/file/source.go, handleDir): of a directory the files *.hcl and *.json, of the agent's
// configuration in alphabetical order, a later file's values over an earlier one's.
//
// Of several policies, policy_name names the one. Without it, those count that are enabled and
// whose target is a target block with this plugin as driver (without an agent configuration: the
// target "harvester"). The policy's target names the target block; without a policy there must be
// only one.
//
// INVALID_ARGUMENT with every problem of the choice, one line each, or the first mistake in a file,
// with its line; of a directory of policies it is a warning if policy_name is in another file, as
// the agent reads the others, too. NOT_FOUND, PERMISSION_DENIED, RESOURCE_EXHAUSTED
// (base::kMaxConfigFileBytes) for files. Blocks on the file system only.
absl::StatusOr<FileSettings> ReadOperatorFiles(const OperatorFiles& given);

// The same of each policy that is enabled and reaches this plugin, by name. INVALID_ARGUMENT also
// without files of policies, and with a policy_name.
absl::StatusOr<std::vector<FileSettings>> ReadFilesOfAll(OperatorFiles given);

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_OPERATOR_FILES_H_
