// SPDX-License-Identifier: Apache-2.0
// Reads --agent-config, --policy and --policy-name: the plugin's block and a policy's target block
// from the files of the autoscaler's agent. Private to module cli.
#ifndef NOMAD_HARVESTER_CLI_OPERATOR_FILES_H_
#define NOMAD_HARVESTER_CLI_OPERATOR_FILES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "nomad_harvester/config/plugin_config.h"
#include "nomad_harvester/scaling/snapshot.h"

#include "absl/status/statusor.h"
#include "agent_files.h"

namespace nomad_harvester::cli {

// What the files of one command hold: each is read once.
class ReadFiles {
 public:
  const absl::StatusOr<AgentConfig>& Agent(const std::vector<std::string>& paths);
  const absl::StatusOr<FilePolicies>& Policies(const std::string& path,
                                               const std::string& but = "");

 private:
  std::map<std::vector<std::string>, absl::StatusOr<AgentConfig>> agents_;
  std::map<std::pair<std::string, std::string>, absl::StatusOr<FilePolicies>> policies_;
};

// Paths of files or directories; empty: not given.
struct OperatorFiles {
  std::vector<std::string> agent_config;
  std::string policy;
  std::string policy_name;
  // Where FindAgentFiles has found agent_config; empty: an option named it, or nothing was found.
  std::string found_by{};
  // Why FindAgentFiles has found none: "/etc/nomad-autoscaler does not exist".
  std::string why_none{};
  // The command needs a policy: if `policy` is empty, read the agent's policy.dir. A policy_name
  // requires the same.
  bool needs_policy = false;
  // If no word of the command is a pool (TakePolicyName): what one of them may mean, "; did you
  // mean web?", or empty; the labels of the enabled policies; and what of the files cannot be read,
  // each line after a newline.
  std::string hint{};
  std::vector<std::string> labels{};
  std::string unread{};
  std::shared_ptr<ReadFiles> read = std::make_shared<ReadFiles>();  // shared by copies

  bool AreGiven() const { return !agent_config.empty() || !policy.empty(); }
};

// The files of the agent on this machine, one or several with ":" between them; set but empty:
// none.
inline constexpr char kAgentConfigVariable[] = "NOMAD_HARVESTER_AGENT_CONFIG";
inline constexpr char kAgentDirectory[] = "/etc/nomad-autoscaler";

// Returns `given` with the agent's configuration if no option named it: that of the variable, else
// `directory` if it has such files.
OperatorFiles FindAgentFiles(OperatorFiles given, const config::StringMap& environment,
                             const std::string& directory = kAgentDirectory);

// "no files of the agent are read (/etc/nomad-autoscaler does not exist)".
std::string NoFilesText(const std::string& why_none);
// Likewise, and how to name them, or do without: `instead`. `pool` is how a word named the pool, if
// one did.
std::string WithoutFiles(const std::string& why_none, const std::string& pool,
                         const std::string& instead);
// What is given instead of them: "the pool with --set node_group_name=web".
std::string PoolBySet(const std::string& pool);

// The labels of all policies of the files, enabled or not, in their order. Errors: see
// ReadOperatorFiles.
absl::StatusOr<std::vector<std::string>> PolicyNames(OperatorFiles files);

// Chooses a policy by the first of these words that is the label of an enabled one, or else names
// the pool of one, and removes the word. If none does, sets hint, labels and unread. Nothing, if a
// policy is chosen already.
void TakePolicyName(OperatorFiles* files, std::vector<std::string>* words);

// A check of the chosen policy, and the destination of its query.
struct MetricQuery {
  std::string policy;
  bool from_zero = false;  // the policy is of type "cluster", and its min is 0
  PolicyCheck check;
  // The check's source; unset: the agent's configuration has none with this name, or was not given.
  std::optional<AgentPlugin> apm;
  bool apms_are_known = false;
  std::string instead{};  // without apm: "; did you mean prometheus?", or what the agent has
};

// Whether the check asks an apm block of this driver.
bool IsOurs(const MetricQuery& query);

// The minimum and maximum number of VMs that the agent wants.
struct CountLimits {
  std::string policy;  // "policy "web" (web.hcl:1:1)"
  std::int64_t min = 0;
  std::int64_t max = 0;
};

// A pool that an enabled policy of the agent scales with this plugin.
struct FilePool {
  scaling::PoolKey key;
  std::string label;   // of the policy
  std::string policy;  // "policy "web" (web.hcl:1:1)"
  std::string target;
  config::StringMap plugin;  // of the target's block

  // The URL of the Harvester that the target's block or the environment names; if none does, a text
  // that no other target has.
  std::string Harvester(const config::StringMap& environment) const;
};

// A pool of one Harvester that several enabled policies scale (rule L11).
struct SharedPool {
  scaling::PoolKey key;
  std::string text;      // the policies, and what is wrong
  bool by_this = false;  // one of them is the chosen policy
};

// The namespace of the pool that has this target block.
std::string NamespaceOf(const config::StringMap& target);

// An enabled policy, or a file of policies, that cannot be read.
struct UnreadPolicy {
  std::string label;    // of the policy; empty: not known
  std::string where;    // "web.hcl:4:18", or the file
  std::string ns;       // of its pool; empty: not known
  std::string problem;  // maybe several lines, without `where`

  // "policy web", or "web.hcl:4:18".
  std::string Name() const;
  // "/etc/policies/web.hcl:4:18: this block is not closed": one line.
  std::string Text() const;
};

// What the agent would pass to the plugin, and the queries that it would send before.
struct FileSettings {
  config::StringMap plugin;
  config::StringMap policy;
  std::string policy_name;   // empty: no policy was chosen
  std::string policy_where;  // position of its block
  // Key -> "agent.hcl:12:5". No key is in both maps.
  std::map<std::string, std::string> origins;
  std::vector<std::string> warnings;
  std::vector<MetricQuery> queries;
  // Those of the other enabled policies of the agent that reach this plugin.
  std::vector<MetricQuery> other_queries;
  // Reasons why the agent would not scale by the policy: those of FilePolicy, and its strategies.
  std::vector<std::string> refusals;
  // What agents up to 0.5.0 refuse or do not read in these files; each is a warning, too.
  std::vector<std::string> unknown;
  // Limits of an enabled policy, which the agent enforces. Unset: no such policy.
  std::optional<CountLimits> limits = {};
  // The apm blocks of this driver in the agent's configuration, by name.
  std::map<std::string, config::StringMap> apms = {};
  // Of the agent's configuration; without a path, `where` is the files that have none.
  PluginDirectory plugin_dir;
  // Why the agent may not read the policy by its policy.dir; empty: it does.
  std::string policy_dir_doubt = {};
  std::vector<std::string> files;  // that were read: the agent's, then those of policies
  // "/etc/nomad-autoscaler and /etc/nomad-autoscaler/policies": what was read although no option
  // named it; empty: nothing.
  std::string found;
  std::string target;           // whose block `plugin` is; empty: no file has one
  std::vector<FilePool> pools;  // of all policies that the agent reads; of any Harvester
  std::string hint{};           // as given
  std::string why_none{};       // as given

  // How people know a policy of the pool, of which the Lease has the id: the agent makes a new one
  // whenever it starts. Its label in the files, or else the id.
  std::string PolicyOf(const scaling::PoolKey& key, const std::string& id) const;

  std::vector<SharedPool> SharedPools(const config::StringMap& environment) const;
  // The text of the one that the chosen policy scales; empty: it scales its pool alone.
  std::string SharedText(const config::StringMap& environment) const;
};

// The pools of the files on the Harvester of a command: those of the files' target, whose block is
// `plugin` for the command, and those of the other targets that name the same one.
std::set<scaling::PoolKey> PoolsOfHarvester(const FileSettings& files,
                                            const config::StringMap& plugin,
                                            const config::StringMap& environment);

// Reads as the agent does (hashicorp/nomad-autoscaler:agent/config/config.go, Load;
// policy/file/source.go, handleDir): in a directory the files *.hcl and *.json; for the agent's
// configuration in alphabetical order, with later files overriding earlier ones.
//
// policy_name selects a policy by its label, or else by its pool, as node_group_name or
// NAMESPACE/NAME. Without it, the candidates are those that are enabled and whose target is a
// target block with this plugin as driver (without an agent configuration: the target "harvester").
// Without a policy there must be only one such block.
//
// INVALID_ARGUMENT with every problem of the choice, one line each, or the first mistake in a file,
// with its line. In a directory of policies a mistake is only a warning if policy_name is in
// another file; those beside a single file do not matter. NOT_FOUND, PERMISSION_DENIED,
// RESOURCE_EXHAUSTED (base::kMaxConfigFileBytes) for files. If the agent's configuration was found
// without an option, each error says so. Blocks only on the file system.
absl::StatusOr<FileSettings> ReadOperatorFiles(const OperatorFiles& given);

// The same of each policy that is enabled and reaches this plugin, by name; policy_name must be
// empty. In a directory a mistake in one file leaves the others. INVALID_ARGUMENT also without
// files of policies.
struct FilesOfAll {
  std::vector<FileSettings> policies;
  // Files with a mistake, labels that several policies have, and policies whose target is in no
  // file but resembles one of this plugin's: that of another plugin is none of our business.
  std::vector<UnreadPolicy> unread;
};
absl::StatusOr<FilesOfAll> ReadFilesOfAll(OperatorFiles given);

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_OPERATOR_FILES_H_
