// SPDX-License-Identifier: Apache-2.0
#include "agent_files.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <iterator>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "nomad_harvester/base/file.h"
#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/hcl/document.h"

#include "agent_block.h"

namespace nomad_harvester::cli {
namespace {

using hcl::Block;
using hcl::Source;

// The metrics that the agent reads from Nomad itself (plugins/plugin.go, InternalAPMNomad).
constexpr char kNomadApm[] = "nomad-apm";
constexpr char kPluginDir[] = "plugin_dir";

// hashicorp/nomad-autoscaler:sdk/helper/file/file.go, GetFileListFromDir and IsTemporaryFile.
bool IsLoaded(std::string_view name) {
  const bool temporary = name.ends_with('~') || name.starts_with(".#") ||
                         (name.starts_with('#') && name.ends_with('#'));
  return !temporary && (name.ends_with(".hcl") || name.ends_with(".json"));
}

absl::StatusOr<std::vector<std::string>> FilesOf(const std::string& path) {
  std::error_code unreadable;
  if (!std::filesystem::is_directory(path, unreadable)) return std::vector<std::string>{path};
  NH_ASSIGN_OR_RETURN(const std::vector<std::string> names, base::ListDirectory(path));
  std::vector<std::string> files;
  for (const std::string& name : names) {
    if (IsLoaded(name)) files.push_back((std::filesystem::path(path) / name).string());
  }
  if (files.empty()) return base::InvalidArgument(path + ": has no files *.hcl or *.json");
  return files;
}

using Schema = std::vector<hcl::BlockSchema>;
using ReadContent = std::function<absl::Status(const Source& source, const AgentBlock& content)>;

// `policy_warnings`: set for a policy file, which may call jsonencode; null for other files.
absl::Status ReadOneFile(const std::string& file, const Schema& schema, const ReadContent& read,
                         std::vector<std::string>* policy_warnings = nullptr) {
  NH_ASSIGN_OR_RETURN(std::string text, base::ReadFile(file));
  const Source source(file, std::move(text));
  std::vector<std::size_t> calls;
  NH_ASSIGN_OR_RETURN(
      const hcl::Body body,
      hcl::ReadDocument(source, schema, policy_warnings == nullptr ? nullptr : &calls));
  if (!calls.empty()) {
    policy_warnings->push_back(source.Where(calls.front()) +
                               ": agents up to 0.5.0 do not know jsonencode: they read no policy "
                               "of this file; write the text itself for them");
  }
  return read(source, AgentBlock(source, body, 0));
}

// Returns zero if it is missing or empty.
absl::StatusOr<base::Duration> ReadDuration(const AgentBlock& block, const char* name) {
  NH_ASSIGN_OR_RETURN(const std::string text, block.Text(name));
  if (text.empty()) return base::Duration::zero();
  auto read = base::ParseGoDuration(text);
  if (read.ok()) return read;
  return base::InvalidArgument(block.Where(name) + ": " + name + ": " +
                               base::Message(read.status()));
}

// The agent's block nomad, with the keys that the plugin receives
// (hashicorp/nomad-autoscaler:sdk/helper/nomad/config.go, MergeMapWithAgentConfig).
class NomadBlock {
 public:
  // A later file's values replace an earlier one's, unless they are empty.
  absl::Status Read(const AgentBlock& block, std::vector<std::string>* warnings) {
    NH_RETURN_IF_ERROR(block.CheckNames(
        {"address", "region", "namespace", "token", "http_auth", "ca_cert", "ca_path",
         "client_cert", "client_key", "tls_server_name", "skip_verify", "block_query_wait_time"},
        {}, warnings));
    static constexpr std::pair<const char*, const char*> kTexts[] = {
        {"address", "nomad_address"},       {"region", "nomad_region"},
        {"token", "nomad_token"},           {"ca_cert", "nomad_ca-cert"},
        {"ca_path", "nomad_ca-path"},       {"client_cert", "nomad_client-cert"},
        {"client_key", "nomad_client-key"}, {"tls_server_name", "nomad_tls-server-name"}};
    for (const auto& [name, key] : kTexts) {
      NH_ASSIGN_OR_RETURN(const std::string text, block.Text(name));
      Set(key, text, block.Where(name));
    }
    NH_ASSIGN_OR_RETURN(std::string auth, block.Text("http_auth"));
    // "user:" has no password.
    if (!auth.empty() && auth.find(':') == auth.size() - 1) auth.pop_back();
    Set("nomad_http-auth", auth, block.Where("http_auth"));
    NH_ASSIGN_OR_RETURN(const bool skip_verify, block.Bool("skip_verify"));
    Set("nomad_skip-verify", skip_verify ? "true" : "", block.Where("skip_verify"));
    NH_ASSIGN_OR_RETURN(const std::vector<std::string> namespaces, block.Texts("namespace"));
    Set("nomad_namespace", NamespaceOf(namespaces), block.Where("namespace"));
    return ReadWait(block);
  }

  // Adds the keys that `config` lacks, unless its nomad_config_inherit forbids it.
  void AddTo(FileMap* config) const {
    const auto inherit = config->values.find("nomad_config_inherit");
    if (inherit != config->values.end()) {
      if (!base::ParseGoBool(inherit->second).value_or(false)) return;
    }
    for (const auto& [key, value] : keys_.values) {
      if (!config->values[key].empty()) continue;
      config->values[key] = value;
      config->origins[key] = keys_.origins.at(key);
    }
  }

 private:
  void Set(const std::string& key, const std::string& value, const std::string& where) {
    if (value.empty()) return;
    keys_.values[key] = value;
    keys_.origins[key] = where;
  }

  absl::Status ReadWait(const AgentBlock& block) {
    constexpr char kName[] = "block_query_wait_time";
    NH_ASSIGN_OR_RETURN(const base::Duration wait, ReadDuration(block, kName));
    if (wait.count() != 0) {
      Set("nomad_block-query-wait-time", base::FormatGoDuration(wait), block.Where(kName));
    }
    return absl::OkStatus();
  }

  // If there are several, the agent's client requests all and filters its policies
  // (MergeDefaultWithAgentConfig, and normalizeNamespaces of agent/config/config.go).
  static std::string NamespaceOf(const std::vector<std::string>& given) {
    std::set<std::string_view> names;
    for (const std::string& name : given) names.insert(base::TrimAsciiSpace(name));
    names.erase("");
    if (names.empty()) return "";
    return names.size() > 1 ? "*" : std::string(*names.begin());
  }

  FileMap keys_;
};

absl::StatusOr<AgentPlugin> ReadPlugin(const AgentBlock& block) {
  NH_RETURN_IF_ERROR(block.CheckNames({"driver", "args", "config"}, {}, nullptr));
  AgentPlugin plugin;
  NH_ASSIGN_OR_RETURN(plugin.driver, block.RequiredText("driver"));
  NH_ASSIGN_OR_RETURN(plugin.config, block.MapOf("config"));
  return plugin;
}

// Reads the blocks of one type, "target" or "apm".
absl::Status ReadPlugins(const AgentBlock& content, const std::string& type,
                         std::map<std::string, AgentPlugin>* plugins) {
  std::set<std::string> names;
  for (const Block* block : content.BlocksOf(type)) {
    NH_ASSIGN_OR_RETURN(const std::string name, LabelOf(content.source(), *block));
    if (!names.insert(name).second) {
      return content.Error(
          block->offset, "a second " + type + " " + name + "; the agent would use this one alone");
    }
    NH_ASSIGN_OR_RETURN(AgentPlugin plugin, ReadPlugin(content.Inside(*block)));
    const auto [known, is_new] = plugins->try_emplace(name, plugin);
    // The first file's driver is kept (agent/config/config.go, Plugin.merge).
    if (!is_new && !plugin.config.values.empty()) known->second.config = std::move(plugin.config);
  }
  return absl::OkStatus();
}

// A later file's value replaces an earlier one's, unless it is empty (agent/config/config.go,
// Policy.merge).
absl::Status ReadPolicyDir(const AgentBlock& content, AgentConfig* config) {
  NH_ASSIGN_OR_RETURN(const Block* const block, content.OnlyBlock("policy"));
  if (block == nullptr) return absl::OkStatus();
  NH_ASSIGN_OR_RETURN(std::string dir, content.Inside(*block).Text("dir"));
  if (!dir.empty()) config->policy_dir = std::move(dir);
  return absl::OkStatus();
}

// Likewise (agent/config/config.go, Agent.Merge).
absl::Status ReadPluginDir(const AgentBlock& content, AgentConfig* config) {
  NH_ASSIGN_OR_RETURN(std::string path, content.Text(kPluginDir));
  if (!path.empty()) {
    config->plugin_dir = {.path = std::move(path), .where = content.Where(kPluginDir)};
  }
  return absl::OkStatus();
}

// Reads the agent's reaction to an error: "a" or "b" or nothing.
absl::Status ReadOnError(const AgentBlock& block, const char* name,
                         std::vector<std::string>* refusals) {
  NH_ASSIGN_OR_RETURN(const std::string text, block.Text(name));
  if (text.empty() || text == "fail" || text == "ignore") return absl::OkStatus();
  refusals->push_back(block.Where(name) + ": " + name + " must be \"fail\" or \"ignore\"");
  return absl::OkStatus();
}

// True for 1 according to strconv.Atoi.
bool IsOne(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto number = base::ParseInt(text);
  return number.ok() && *number == 1;
}

// Returns the name of a check's strategy; its settings concern only the agent.
absl::StatusOr<std::string> ReadStrategy(const AgentBlock& check, bool instant,
                                         std::vector<std::string>* refusals) {
  NH_ASSIGN_OR_RETURN(const Block* const block, check.OnlyBlock("strategy"));
  if (block == nullptr) {
    refusals->push_back(check.Where("strategy") + ": the check has no block strategy");
    return std::string();
  }
  NH_ASSIGN_OR_RETURN(std::string name, LabelOf(check.source(), *block));
  const AgentBlock inside = check.Inside(*block);
  if (name.empty()) refusals->push_back(inside.Where("") + ": the strategy has no name");
  if (name.starts_with("app-sizing")) {
    refusals->push_back(inside.Where("") + ": the strategy " + name + " is not for a cluster");
  }
  constexpr char kTrigger[] = "within_bounds_trigger";
  NH_ASSIGN_OR_RETURN(const std::string trigger, inside.Text(kTrigger));
  if (instant && name == "threshold" && !IsOne(trigger)) {
    refusals->push_back(inside.Where(kTrigger) + ": " + kTrigger +
                        " must be 1 with query_window = \"instant\"");
  }
  return name;
}

absl::StatusOr<PolicyCheck> ReadCheck(const AgentBlock& block, std::vector<std::string>* refusals) {
  PolicyCheck check;
  NH_ASSIGN_OR_RETURN(check.source, block.Text("source"));
  // hashicorp/nomad-autoscaler:policy/policy.go, CanonicalizeCheck.
  if (check.source.empty()) check.source = kNomadApm;
  NH_RETURN_IF_ERROR(block.Text("query").status());
  NH_ASSIGN_OR_RETURN(const std::string window, block.Text("query_window"));
  // hashicorp/nomad-autoscaler:sdk/policy.go, Translate.
  const bool instant = window == "instant";
  if (!instant) NH_RETURN_IF_ERROR(ReadDuration(block, "query_window").status());
  NH_RETURN_IF_ERROR(ReadDuration(block, "query_window_offset").status());
  NH_ASSIGN_OR_RETURN(check.strategy, ReadStrategy(block, instant, refusals));
  NH_RETURN_IF_ERROR(ReadOnError(block, "on_error", refusals));
  return check;
}

// Reads the content of a policy.
absl::Status ReadPolicyBody(const AgentBlock& block, std::vector<std::string>* warnings,
                            FilePolicy* policy) {
  NH_RETURN_IF_ERROR(block.CheckNames(
      {"cooldown", "cooldown_on_scale_up", "evaluation_interval", "on_check_error"},
      {"schedule", "check", "target"}, warnings));
  for (const Block* const check : block.BlocksOf("check")) {
    NH_ASSIGN_OR_RETURN(const std::string name, LabelOf(block.source(), *check));
    NH_ASSIGN_OR_RETURN(PolicyCheck read, ReadCheck(block.Inside(*check), &policy->refusals));
    read.name = name;
    read.where = block.source().Where(check->offset);
    policy->checks.push_back(std::move(read));
  }
  if (policy->checks.empty()) {
    policy->refusals.push_back(block.Where("check") + ": there is no block check");
  }
  for (const char* const name : {"cooldown", "cooldown_on_scale_up", "evaluation_interval"}) {
    NH_RETURN_IF_ERROR(ReadDuration(block, name).status());
  }
  NH_RETURN_IF_ERROR(ReadOnError(block, "on_check_error", &policy->refusals));
  NH_ASSIGN_OR_RETURN(const Block* const target, block.OnlyBlock("target"));
  if (target == nullptr) return absl::OkStatus();
  NH_ASSIGN_OR_RETURN(policy->target, LabelOf(block.source(), *target));
  if (!target->body.blocks.empty()) {
    return block.Error(target->body.blocks.front().offset, "a target block has arguments only");
  }
  NH_ASSIGN_OR_RETURN(policy->config, block.Map(target->body.arguments));
  return absl::OkStatus();
}

absl::Status ReadLimits(const AgentBlock& block, FilePolicy* policy) {
  NH_ASSIGN_OR_RETURN(policy->min, block.Integer("min"));
  NH_ASSIGN_OR_RETURN(policy->max, block.Integer("max"));
  const std::int64_t max = policy->max;
  if (policy->min < 0) policy->refusals.push_back(block.Where("min") + ": min is negative");
  if (max < 0) policy->refusals.push_back(block.Where("max") + ": max is negative");
  if (policy->min > max) {
    policy->refusals.push_back(block.Where("min") + ": min, " + std::to_string(policy->min) +
                               ", is greater than max, " + std::to_string(max));
  }
  return absl::OkStatus();
}

absl::StatusOr<FilePolicy> ReadPolicy(const AgentBlock& block, std::vector<std::string>* warnings) {
  FilePolicy policy;
  NH_RETURN_IF_ERROR(block.CheckNames({"enabled", "type", "min", "max"}, {"policy"}, warnings));
  NH_RETURN_IF_ERROR(block.RequiredText("max").status());
  NH_ASSIGN_OR_RETURN(policy.enabled, block.Bool("enabled"));
  NH_RETURN_IF_ERROR(ReadLimits(block, &policy));
  NH_ASSIGN_OR_RETURN(const std::string type, block.Text("type"));
  if (!type.empty()) policy.type = type;
  if (policy.type != "cluster" && policy.type != "horizontal") {
    policy.refusals.push_back(block.Where("type") + ": the type of a cluster's policy is " +
                              "\"cluster\"");
  }
  NH_ASSIGN_OR_RETURN(const Block* const body, block.OnlyBlock("policy"));
  if (body == nullptr) return block.Error("this block has no block policy");
  NH_RETURN_IF_ERROR(ReadPolicyBody(block.Inside(*body), warnings, &policy));
  return policy;
}

absl::StatusOr<FilePolicies> ReadPolicyFile(const std::string& file) {
  FilePolicies found;
  const Schema schema = {
      {"scaling",
       1,
       {{"policy", 0, {{"schedule", 0}, {"check", 1, {{"strategy", 1}}}, {"target", 1}}}}}};
  NH_RETURN_IF_ERROR(ReadOneFile(
      file, schema,
      [&](const Source& source, const AgentBlock& content) {
        for (const char* const type : {"target", "apm", "nomad"}) {
          const auto blocks = content.BlocksOf(type);
          if (blocks.empty()) continue;
          return content.Error(blocks.front()->offset,
                               "a block " + std::string(type) +
                                   " outside of a policy is the agent's configuration: give this "
                                   "file with --agent-config");
        }
        NH_RETURN_IF_ERROR(content.CheckNames({}, {"scaling"}, nullptr));
        for (const Block* block : content.BlocksOf("scaling")) {
          NH_ASSIGN_OR_RETURN(std::string name, LabelOf(source, *block));
          NH_ASSIGN_OR_RETURN(FilePolicy policy,
                              ReadPolicy(content.Inside(*block), &found.warnings));
          policy.name = std::move(name);
          policy.where = source.Where(block->offset);
          if (!policy.target.empty()) found.policies.push_back(std::move(policy));
        }
        return absl::OkStatus();
      },
      &found.warnings));
  return found;
}

}  // namespace

absl::StatusOr<AgentConfig> ReadAgentConfig(const std::string& path) {
  // Every agent has these (agent/config/config.go, Default).
  AgentConfig config{.targets = {{"nomad-target", {.driver = "nomad-target", .config = {}}}},
                     .apms = {{kNomadApm, {.driver = kNomadApm, .config = {}}}},
                     .strategies = {{"fixed-value", {}},
                                    {"pass-through", {}},
                                    {"target-value", {}},
                                    {"threshold", {}}},
                     .plugin_dir = {},
                     .policy_dir = "",
                     .warnings = {}};
  NomadBlock nomad;
  const Schema schema = {
      {"target", 1}, {"apm", 1}, {"strategy", 1}, {"nomad", 0}, {"policy", 0, {{"source", 1}}}};
  NH_ASSIGN_OR_RETURN(const std::vector<std::string> files, FilesOf(path));
  for (const std::string& file : files) {
    NH_RETURN_IF_ERROR(ReadOneFile(file, schema, [&](const Source&, const AgentBlock& content) {
      if (const auto policies = content.BlocksOf("scaling"); !policies.empty()) {
        return content.Error(policies.front()->offset,
                             "a block scaling is a policy's: give this file with --policy");
      }
      NH_RETURN_IF_ERROR(content.CheckNames(
          {"log_level", "log_json", "log_include_location", "enable_debug", kPluginDir},
          {"apm", "dynamic_application_sizing", "high_availability", "http", "nomad", "policy",
           "policy_eval", "strategy", "target", "telemetry"},
          &config.warnings));
      NH_ASSIGN_OR_RETURN(const Block* const block, content.OnlyBlock("nomad"));
      if (block != nullptr) {
        NH_RETURN_IF_ERROR(nomad.Read(content.Inside(*block), &config.warnings));
      }
      NH_RETURN_IF_ERROR(ReadPluginDir(content, &config));
      NH_RETURN_IF_ERROR(ReadPolicyDir(content, &config));
      NH_RETURN_IF_ERROR(ReadPlugins(content, "apm", &config.apms));
      NH_RETURN_IF_ERROR(ReadPlugins(content, "strategy", &config.strategies));
      return ReadPlugins(content, "target", &config.targets);
    }));
  }
  for (auto& [name, target] : config.targets) nomad.AddTo(&target.config);
  return config;
}

absl::StatusOr<FilePolicies> ReadPolicies(const std::string& path) {
  FilePolicies all;
  NH_ASSIGN_OR_RETURN(const std::vector<std::string> files, FilesOf(path));
  for (const std::string& file : files) {
    auto found = ReadPolicyFile(file);
    if (!found.ok()) {
      if (file == path) return found.status();
      all.mistakes.push_back(found.status());
      continue;
    }
    std::move(found->policies.begin(), found->policies.end(), std::back_inserter(all.policies));
    std::move(found->warnings.begin(), found->warnings.end(), std::back_inserter(all.warnings));
  }
  return all;
}

}  // namespace nomad_harvester::cli
