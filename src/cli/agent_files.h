// SPDX-License-Identifier: Apache-2.0
// Reads the blocks of the agent's files that concern the plugin. Private to module cli.
#ifndef NOMAD_HARVESTER_CLI_AGENT_FILES_H_
#define NOMAD_HARVESTER_CLI_AGENT_FILES_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "nomad_harvester/config/plugin_config.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace nomad_harvester::cli {

// Keys with their values and their positions: "agent.hcl:12:5".
struct FileMap {
  config::StringMap values;
  std::map<std::string, std::string> origins;
};

// A block target "NAME" { driver, config } or apm "NAME" of the agent's configuration.
struct AgentPlugin {
  std::string driver;
  std::vector<std::string> args{};
  FileMap config;
};

// plugin_dir of the agent's configuration; the agent looks for <plugin_dir>/<driver>.
struct PluginDirectory {
  std::string path;   // as written; empty: not set
  std::string where;  // its position: "agent.hcl:6:1"
};

// Merged as the agent does it. `config` has the keys that the agent adds from its block nomad, but
// not those from its environment and Nomad's defaults.
struct AgentConfig {
  std::map<std::string, AgentPlugin> targets;     // by name
  std::map<std::string, AgentPlugin> apms;        // sources of the policies' checks, by name
  std::map<std::string, AgentPlugin> strategies;  // by name
  PluginDirectory plugin_dir;
  std::string policy_dir;            // as written; the agent takes it from its directory
  std::vector<std::string> files;    // that were read, in this order
  std::vector<std::string> unknown;  // what agents up to 0.5.0 refuse or do not read
  std::vector<std::string> warnings;
};

// A block check "NAME" { source, strategy "NAME", … } of a policy.
struct PolicyCheck {
  std::string name;
  std::string where;  // position of its block
  std::string source;
  std::string query;
  std::string strategy;
};

// A policy from a file; its target block is `target`.
struct FilePolicy {
  std::string name;
  std::string where;  // position of its block
  bool enabled = false;
  std::string type = "cluster";
  std::string target;
  FileMap config;
  std::int64_t min = 0;
  std::int64_t max = 0;
  std::vector<PolicyCheck> checks;
  // Reasons why the agent would not scale by the policy if it were enabled, with their positions
  // (hashicorp/nomad-autoscaler:policy/policy.go, ValidatePolicy; sdk/policy.go, Validate;
  // policy/handler.go, loadCheckRunners).
  std::vector<std::string> refusals;
  std::vector<std::string> unknown;  // names in its file that agents up to 0.5.0 refuse
};

struct FilePolicies {
  std::vector<FilePolicy> policies;  // those with a target, sorted by file name
  std::vector<std::string> files;    // that were read, in this order
  std::vector<std::string> warnings;
  // For a directory: one error for each file of which no policy is read
  // (hashicorp/nomad-autoscaler:policy/file/source.go, handleDir).
  std::vector<absl::Status> mistakes;
};

// A path is a file, or a directory with files *.hcl and *.json; of several, a later one overrides.
// Errors: see ReadOperatorFiles.
absl::StatusOr<AgentConfig> ReadAgentConfig(const std::vector<std::string>& paths);
// `but`: the name of a file that is left out.
absl::StatusOr<FilePolicies> ReadPolicies(const std::string& path, const std::string& but = "");

// Whether reading the path could find something: it exists, and is no directory without such files.
bool HasAgentFiles(const std::string& path);

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_AGENT_FILES_H_
