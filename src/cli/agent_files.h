// SPDX-License-Identifier: Apache-2.0
// The blocks of the agent's files that concern the plugin. Private to module cli.
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

// Keys and values, and where each one stands: "agent.hcl:12:5".
struct FileMap {
  config::StringMap values;
  std::map<std::string, std::string> origins;
};

// target "NAME" { driver, config } of the agent's configuration, or apm "NAME".
struct AgentPlugin {
  std::string driver;
  FileMap config;
};

// plugin_dir of the agent's configuration, in which it looks for <plugin_dir>/<driver>.
struct PluginDirectory {
  std::string path;   // as written; empty: none is
  std::string where;  // it stands: "agent.hcl:6:1"
};

// Merged like by the agent. `config` has the keys that the agent adds from its block nomad, but not
// those that it takes from its environment and Nomad's defaults.
struct AgentConfig {
  std::map<std::string, AgentPlugin> targets;     // by name
  std::map<std::string, AgentPlugin> apms;        // what the checks of policies ask, by name
  std::map<std::string, AgentPlugin> strategies;  // by name
  PluginDirectory plugin_dir;
  std::string policy_dir;             // as written; the agent takes it from its directory
  std::vector<std::string> warnings;  // what is not known here, and therefore not read
};

// check "NAME" { source, strategy "NAME", … } of a policy.
struct PolicyCheck {
  std::string name;
  std::string where;  // of its block
  std::string source;
  std::string strategy;
};

// A policy of a file, whose target block is `target`.
struct FilePolicy {
  std::string name;
  std::string where;  // of its block
  bool enabled = false;
  std::string type = "cluster";
  std::string target;
  FileMap config;
  std::int64_t min = 0;
  std::int64_t max = 0;
  std::vector<PolicyCheck> checks;
  // Why the agent does not scale by it once it is enabled, each with its place
  // (hashicorp/nomad-autoscaler:policy/policy.go, ValidatePolicy; sdk/policy.go, Validate;
  // policy/handler.go, loadCheckRunners). Schedules are not looked at.
  std::vector<std::string> refusals;
};

struct FilePolicies {
  std::vector<FilePolicy> policies;  // those with a target, in the order of the files' names
  std::vector<std::string> warnings;
  // Of the files of a directory of which no policy is read, one each
  // (hashicorp/nomad-autoscaler:policy/file/source.go, handleDir).
  std::vector<absl::Status> mistakes;
};

// `path` is a file, or a directory with files *.hcl and *.json. Errors: see ReadOperatorFiles.
absl::StatusOr<AgentConfig> ReadAgentConfig(const std::string& path);
absl::StatusOr<FilePolicies> ReadPolicies(const std::string& path);

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_AGENT_FILES_H_
