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
#include "agent_grammar.h"

namespace nomad_harvester::cli {
namespace {

using hcl::Source;

// The metrics that the agent reads from Nomad itself (plugins/plugin.go, InternalAPMNomad).
constexpr char kNomadApm[] = "nomad-apm";
constexpr char kPluginDir[] = "plugin_dir";

// hashicorp/nomad-autoscaler:sdk/helper/file/dir.go, GetFileListFromDir, and IsTemporaryFile.
bool IsLoaded(std::string_view name) {
  const bool temporary = name.ends_with('~') || name.starts_with(".#") ||
                         (name.starts_with('#') && name.ends_with('#'));
  return !temporary && (name.ends_with(".hcl") || name.ends_with(".json"));
}

absl::StatusOr<std::vector<std::string>> FilesOf(const std::string& path) {
  std::error_code unreadable;
  if (!std::filesystem::is_directory(path, unreadable)) return std::vector<std::string>{path};
  // The agent reads a link, too, wherever it leads.
  NH_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                      base::ListDirectory(path, base::Listed::kAndLinks));
  std::vector<std::string> files;
  for (const std::string& name : names) {
    if (IsLoaded(name)) files.push_back((std::filesystem::path(path) / name).string());
  }
  if (files.empty()) return base::InvalidArgument(path + ": has no files *.hcl or *.json");
  return files;
}

// True if the text begins a block job "NAME" on a line of its own, or is the JSON of a job. No file
// of the agent has such a block.
bool LooksLikeJob(std::string_view text) {
  const std::string_view start = base::TrimAsciiSpace(text).substr(0, 20);
  return text.starts_with("job \"") || text.find("\njob \"") != std::string_view::npos ||
         (start.starts_with('{') && base::AsciiLower(start).find("\"job\"") != std::string::npos);
}

// Adds what the agent does with the file to the first line of the error, unless only this reader
// refuses it.
absl::Status WithConsequence(const absl::Status& error, std::string_view consequence) {
  std::string text = base::Message(error);
  if (text.find("read here") != std::string::npos) return error;
  return base::InvalidArgument(text.insert(std::min(text.find('\n'), text.size()),
                                           " (the agent " + std::string(consequence) + ")"));
}

// What is particular to the agent's configuration, or to a file of policies.
struct FileKind {
  const BlockRule& rule;
  const char* consequence;  // of a mistake
  std::vector<std::string_view> of_the_other_kind;
  const char* advice;
  bool has_jsonencode;
};

const FileKind& AgentFile() {
  static const FileKind kKind{AgentFileRule(),
                              "does not start with this file",
                              {"scaling"},
                              "is a policy's: give this file with --policy",
                              false};
  return kKind;
}

const FileKind& PolicyFile() {
  static const FileKind kKind{PolicyFileRule(),
                              "reads no policy of this file",
                              {"target", "apm", "nomad", "strategy"},
                              "outside of a policy is the agent's configuration: give this file "
                              "with --agent-config",
                              true};
  return kKind;
}

absl::StatusOr<hcl::Body> ReadBody(const Source& source, const FileKind& kind,
                                   GrammarNotes* notes) {
  std::vector<std::size_t> calls;
  NH_ASSIGN_OR_RETURN(hcl::Body body, hcl::ReadDocument(source, SchemaOf(kind.rule),
                                                        kind.has_jsonencode ? &calls : nullptr));
  if (!calls.empty()) {
    notes->newer.push_back(source.Where(calls.front()) +
                           ": agents up to 0.5.0 do not know jsonencode: they read no policy of "
                           "this file; write the text itself for them");
  }
  for (const std::string_view type : kind.of_the_other_kind) {
    for (const hcl::Block& block : body.blocks) {
      if (block.type != type) continue;
      return source.Error(block.offset, "a block " + std::string(type) + " " + kind.advice);
    }
  }
  NH_RETURN_IF_ERROR(CheckGrammar(source, body, kind.rule, notes));
  return body;
}

using ReadContent = std::function<absl::Status(const AgentBlock& content)>;

absl::Status ReadOneFile(const std::string& file, const FileKind& kind, GrammarNotes* notes,
                         const ReadContent& read) {
  NH_ASSIGN_OR_RETURN(std::string text, base::ReadFile(file));
  const Source source(file, std::move(text));
  const auto body = ReadBody(source, kind, notes);
  if (body.ok() && notes->unknown.empty()) return read(AgentBlock(source, *body));
  if (LooksLikeJob(source.text())) {
    return base::InvalidArgument(
        file +
        ": is a Nomad job, not a file of the agent: write the data of its template blocks to files "
        "as the agent sees them, and give those");
  }
  return body.ok() ? read(AgentBlock(source, *body))
                   : WithConsequence(body.status(), kind.consequence);
}

// The agent's block nomad, with the keys that the plugin receives
// (hashicorp/nomad-autoscaler:sdk/helper/nomad/config.go, MergeMapWithAgentConfig).
class NomadBlock {
 public:
  // A later file's values replace an earlier one's, unless they are empty.
  void Read(const AgentBlock& block) {
    static constexpr std::pair<const char*, const char*> kTexts[] = {
        {"address", "nomad_address"},       {"region", "nomad_region"},
        {"token", "nomad_token"},           {"ca_cert", "nomad_ca-cert"},
        {"ca_path", "nomad_ca-path"},       {"client_cert", "nomad_client-cert"},
        {"client_key", "nomad_client-key"}, {"tls_server_name", "nomad_tls-server-name"}};
    for (const auto& [name, key] : kTexts) Set(key, block.Text(name), block.Where(name));
    std::string auth = block.Text("http_auth");
    // "user:" has no password.
    if (!auth.empty() && auth.find(':') == auth.size() - 1) auth.pop_back();
    Set("nomad_http-auth", auth, block.Where("http_auth"));
    Set("nomad_skip-verify", block.Bool("skip_verify") ? "true" : "", block.Where("skip_verify"));
    Set("nomad_namespace", NamespaceOf(block.Texts("namespace")), block.Where("namespace"));
    constexpr char kWait[] = "block_query_wait_time";
    const auto wait = base::ParseGoDuration(block.Text(kWait)).value_or(base::Duration::zero());
    Set("nomad_block-query-wait-time", wait.count() == 0 ? "" : base::FormatGoDuration(wait),
        block.Where(kWait));
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

// Reads the blocks of one type, "target" or "apm". In a file the last one of a name counts
// (agent/config/config.go, pluginConfigSetMerge).
void ReadPlugins(const AgentBlock& content, const std::string& type,
                 std::map<std::string, AgentPlugin>* plugins, std::vector<std::string>* warnings) {
  std::map<std::string, AgentPlugin> of_file;
  for (const AgentBlock& block : content.Blocks(type)) {
    const auto [known, is_new] = of_file.try_emplace(block.label());
    if (!is_new) {
      warnings->push_back(block.Where() + ": a second " + type + " " + block.label() +
                          "; the agent uses this one alone");
    }
    known->second = {
        .driver = block.Text("driver"), .args = block.Texts("args"), .config = block.Map("config")};
  }
  for (auto& [name, plugin] : of_file) {
    const auto [known, is_new] = plugins->try_emplace(name, plugin);
    // The first file's driver is kept (agent/config/config.go, Plugin.merge).
    if (is_new) continue;
    if (!plugin.args.empty()) known->second.args = std::move(plugin.args);
    if (!plugin.config.values.empty()) known->second.config = std::move(plugin.config);
  }
}

// What a later file may override, unless it is empty there (agent/config/config.go, Agent.Merge).
struct PolicySources {
  bool file = true;
  bool nomad = true;
  std::string where;  // position of the last block source

  absl::Status Read(const AgentBlock& policy) {
    for (const AgentBlock& source : policy.Blocks("source")) {
      const bool is_file = source.label() == "file";
      if (!is_file && source.label() != "nomad") {
        return source.Error("there is no source \"" + source.label() +
                            "\"; the sources are \"file\" and \"nomad\"");
      }
      (is_file ? file : nomad) = source.Bool("enabled", true);
      where = source.Where();
    }
    return absl::OkStatus();
  }
};

// agent/config/config.go, Validate: an empty block is accepted.
absl::Status RefuseEnterprise(const AgentBlock& content) {
  const std::optional<AgentBlock> block = content.Block("dynamic_application_sizing");
  if (!block.has_value()) return absl::OkStatus();
  const config::StringMap values = block->Map().values;
  const bool empty = std::all_of(values.begin(), values.end(),
                                 [](const auto& value) { return value.second.empty(); });
  if (empty) return absl::OkStatus();
  return block->Error(
      "this block is for Nomad Autoscaler Enterprise: another agent does not start with it");
}

void CheckSchedule(const AgentBlock& parent, std::vector<std::string>* refusals) {
  const std::optional<AgentBlock> schedule = parent.Block("schedule");
  if (!schedule.has_value()) return;
  const auto [argument, why] =
      ProblemOfSchedule(schedule->Text("start"), schedule->Text("end"), schedule->Text("duration"));
  if (why.empty()) return;
  refusals->push_back(schedule->Where(argument) + ": schedule: " + argument + ": " + why);
}

// The agent's reaction to an error: "fail" or "ignore" or nothing.
void CheckOnError(const AgentBlock& block, const char* name, std::vector<std::string>* refusals) {
  const std::string text = block.Text(name);
  if (text.empty() || text == "fail" || text == "ignore") return;
  refusals->push_back(block.Where(name) + ": " + name + " must be \"fail\" or \"ignore\"");
}

// True for 1 according to strconv.Atoi.
bool IsOne(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto number = base::ParseInt(text);
  return number.ok() && *number == 1;
}

// Returns the name of a check's strategy; its settings concern only the agent.
std::string ReadStrategy(const AgentBlock& check, std::vector<std::string>* refusals) {
  const std::optional<AgentBlock> block = check.Block("strategy");
  if (!block.has_value()) {
    refusals->push_back(check.Where() + ": the check has no block strategy");
    return "";
  }
  const std::string& name = block->label();
  if (name.empty()) refusals->push_back(block->Where() + ": the strategy has no name");
  if (name.starts_with("app-sizing")) {
    refusals->push_back(block->Where() + ": the strategy " + name + " is not for a cluster");
  }
  constexpr char kTrigger[] = "within_bounds_trigger";
  const bool instant = check.Text("query_window") == "instant";
  if (instant && name == "threshold" && !IsOne(block->Text(kTrigger))) {
    refusals->push_back(block->Where(kTrigger) + ": " + kTrigger +
                        " must be 1 with query_window = \"instant\"");
  }
  return name;
}

PolicyCheck ReadCheck(const AgentBlock& block, std::vector<std::string>* refusals) {
  PolicyCheck check{.name = block.label(),
                    .where = block.Where(),
                    .source = block.Text("source"),
                    .query = block.Text("query"),
                    .strategy = ReadStrategy(block, refusals)};
  // hashicorp/nomad-autoscaler:policy/policy.go, CanonicalizeCheck.
  if (check.source.empty()) check.source = kNomadApm;
  CheckSchedule(block, refusals);
  CheckOnError(block, "on_error", refusals);
  return check;
}

// time.NewTicker (policy/handler.go) panics; of 0 the agent takes its default.
std::string ProblemOfInterval(const AgentBlock& block, const char* name) {
  const auto interval = base::ParseGoDuration(block.Text(name));
  if (!interval.ok() || interval->count() >= 0) return "";
  return block.Where(name) + ": " + name +
         " is negative: the agent crashes; write a time such as \"10s\"";
}

// Workers of the agent's two queues (policy/manager.go, NewLimiter); a later file's count replaces
// an earlier one's.
void CheckWorkers(const AgentBlock& block, std::vector<std::string>* unknown,
                  std::string* no_worker) {
  for (const auto& [queue, where] : block.Map("workers").origins) {
    const auto nearest = base::NearestName(queue, {"cluster", "horizontal"});
    if (queue == "cluster") {
      const bool is_none = base::ParseInt(block.Map("workers").values.at(queue)).value_or(1) == 0;
      *no_worker =
          is_none ? where + ": no worker for cluster: the agent evaluates no policy of a cluster"
                  : "";
    } else if (queue != "horizontal" && nearest.has_value()) {
      unknown->push_back(where + ": unknown queue " + queue + "; did you mean " + *nearest + "?");
    }
  }
}

void CheckLimits(const AgentBlock& block, FilePolicy* policy) {
  policy->min = block.Integer("min");
  policy->max = block.Integer("max");
  const std::int64_t max = policy->max;
  if (policy->min < 0) policy->refusals.push_back(block.Where("min") + ": min is negative");
  if (max < 0) policy->refusals.push_back(block.Where("max") + ": max is negative");
  if (policy->min > max) {
    policy->refusals.push_back(block.Where("min") + ": min, " + std::to_string(policy->min) +
                               ", is greater than max, " + std::to_string(max));
  }
}

absl::StatusOr<FilePolicy> ReadPolicy(const AgentBlock& block) {
  FilePolicy policy{
      .name = block.label(), .where = block.Where(), .enabled = block.Bool("enabled")};
  CheckLimits(block, &policy);
  if (const std::string type = block.Text("type"); !type.empty()) policy.type = type;
  if (policy.type != "cluster" && policy.type != "horizontal") {
    policy.refusals.push_back(block.Where("type") + ": the type of a cluster's policy is " +
                              "\"cluster\"");
  }
  // The agent follows a null pointer (policy/file/parse.go, decodePolicyDoc; policy/manager.go,
  // processMessageAndUpdateHandlers).
  const std::optional<AgentBlock> body = block.Block("policy");
  if (!body.has_value()) return block.Error("this block has no block policy: the agent crashes");
  const std::optional<AgentBlock> target = body->Block("target");
  if (!target.has_value()) {
    if (policy.enabled) return body->Error("this block has no block target: the agent crashes");
    return policy;
  }
  policy.target = target->label();
  policy.config = target->Map();
  for (const AgentBlock& check : body->Blocks("check")) {
    policy.checks.push_back(ReadCheck(check, &policy.refusals));
  }
  if (policy.checks.empty()) policy.refusals.push_back(body->Where() + ": there is no block check");
  CheckSchedule(*body, &policy.refusals);
  CheckOnError(*body, "on_check_error", &policy.refusals);
  if (std::string problem = ProblemOfInterval(*body, "evaluation_interval"); !problem.empty()) {
    policy.refusals.push_back(std::move(problem));
  }
  return policy;
}

absl::StatusOr<FilePolicies> ReadPolicyFile(const std::string& file) {
  FilePolicies found;
  GrammarNotes notes;
  NH_RETURN_IF_ERROR(ReadOneFile(file, PolicyFile(), &notes, [&](const AgentBlock& content) {
    for (const AgentBlock& block : content.Blocks("scaling")) {
      NH_ASSIGN_OR_RETURN(FilePolicy policy, ReadPolicy(block));
      // The last one of a name counts (policy/file/parse.go, decodeFile).
      std::erase_if(found.policies,
                    [&](const FilePolicy& other) { return other.name == policy.name; });
      policy.unknown = notes.unknown;
      if (!policy.target.empty()) found.policies.push_back(std::move(policy));
    }
    return absl::OkStatus();
  }));
  if (found.policies.empty() && !notes.unknown.empty()) {
    return base::InvalidArgument(notes.unknown.front());
  }
  found.warnings = std::move(notes.newer);
  return found;
}

}  // namespace

absl::StatusOr<AgentConfig> ReadAgentConfig(const std::vector<std::string>& paths) {
  // Every agent has these (agent/config/config.go, Default).
  AgentConfig config{.targets = {{"nomad-target", {.driver = "nomad-target", .config = {}}}},
                     .apms = {{kNomadApm, {.driver = kNomadApm, .config = {}}}},
                     .strategies = {{"fixed-value", {}},
                                    {"pass-through", {}},
                                    {"target-value", {}},
                                    {"threshold", {}}},
                     .plugin_dir = {},
                     .policy_dir = "",
                     .files = {},
                     .unknown = {},
                     .warnings = {}};
  NomadBlock nomad;
  PolicySources sources;
  GrammarNotes notes;
  std::string no_worker;
  for (const std::string& path : paths) {
    NH_ASSIGN_OR_RETURN(const std::vector<std::string> found, FilesOf(path));
    config.files.insert(config.files.end(), found.begin(), found.end());
  }
  for (const std::string& file : config.files) {
    NH_RETURN_IF_ERROR(ReadOneFile(file, AgentFile(), &notes, [&](const AgentBlock& content) {
      NH_RETURN_IF_ERROR(RefuseEnterprise(content));
      if (const auto block = content.Block("nomad")) nomad.Read(*block);
      if (std::string dir = content.Text(kPluginDir); !dir.empty()) {
        config.plugin_dir = {.path = std::move(dir), .where = content.Where(kPluginDir)};
      }
      if (const auto block = content.Block("policy")) {
        if (std::string dir = block->Text("dir"); !dir.empty()) config.policy_dir = std::move(dir);
        NH_RETURN_IF_ERROR(sources.Read(*block));
        if (auto problem = ProblemOfInterval(*block, "default_evaluation_interval");
            !problem.empty()) {
          notes.unknown.push_back(std::move(problem));
        }
      }
      if (const auto block = content.Block("policy_eval")) {
        CheckWorkers(*block, &notes.unknown, &no_worker);
      }
      ReadPlugins(content, "apm", &config.apms, &config.warnings);
      ReadPlugins(content, "strategy", &config.strategies, &config.warnings);
      ReadPlugins(content, "target", &config.targets, &config.warnings);
      return absl::OkStatus();
    }));
  }
  // agent/agent.go, setupPolicyManager.
  if (!sources.file && !sources.nomad) {
    return base::InvalidArgument(sources.where +
                                 ": no source of policies is enabled: the agent does not start");
  }
  if (!sources.file) {
    notes.unknown.push_back(sources.where +
                            ": the source \"file\" is off: the agent reads no files of policies");
  }
  if (!no_worker.empty()) notes.unknown.push_back(no_worker);
  config.unknown = std::move(notes.unknown);
  config.warnings.insert(config.warnings.end(), notes.newer.begin(), notes.newer.end());
  // agent/plugins.go, setupPluginsConfig.
  for (auto* const plugins : {&config.targets, &config.apms}) {
    for (auto& [name, plugin] : *plugins) nomad.AddTo(&plugin.config);
  }
  return config;
}

absl::StatusOr<FilePolicies> ReadPolicies(const std::string& path, const std::string& but) {
  FilePolicies all;
  NH_ASSIGN_OR_RETURN(all.files, FilesOf(path));
  std::erase_if(all.files, [&](const std::string& file) {
    return std::filesystem::path(file).filename() == but;
  });
  for (const std::string& file : all.files) {
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

bool HasAgentFiles(const std::string& path) {
  std::error_code unknown;
  if (std::filesystem::status(path, unknown).type() == std::filesystem::file_type::not_found) {
    return false;
  }
  return !absl::IsInvalidArgument(FilesOf(path).status());
}

}  // namespace nomad_harvester::cli
