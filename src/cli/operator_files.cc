// SPDX-License-Identifier: Apache-2.0
#include "operator_files.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <iterator>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/base/text.h"
#include "nomad_harvester/config/pool_policy.h"
#include "nomad_harvester/http/base_url.h"
#include "nomad_harvester/kube/connection.h"

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "agent_files.h"
#include "text.h"

namespace nomad_harvester::cli {
namespace {

template <typename List>
void Append(const List& more, List* list) {
  list->insert(list->end(), more.begin(), more.end());
}

// The targets with which a policy reaches this plugin.
using TargetNames = std::set<std::string>;

std::string Quoted(const TargetNames& names) {
  return "\"" + absl::StrJoin(names, "\", \"") + "\"";
}

TargetNames OursOf(const AgentConfig& agent) {
  TargetNames ours;
  for (const auto& [name, target] : agent.targets) {
    if (target.driver == NOMAD_HARVESTER_PLUGIN_NAME) ours.insert(name);
  }
  return ours;
}

// What the agent has instead of the block with this name.
std::string InsteadOf(const std::string& name, const std::map<std::string, AgentPlugin>& blocks) {
  std::vector<std::string> names;
  for (const auto& [known, block] : blocks) names.push_back(known);
  const std::string hint = DidYouMean(base::NearestName(name, names));
  return hint.empty() ? "; it has " + absl::StrJoin(names, ", ") : hint;
}

// One line for each policy, to choose from.
std::string Lines(const std::vector<const FilePolicy*>& policies) {
  std::string lines;
  for (const FilePolicy* policy : policies) {
    lines += "\n  " + policy->name + (policy->enabled ? "" : " (not enabled)") + ": target \"" +
             policy->target + "\", " + policy->where;
  }
  return lines;
}

using Matches = std::vector<const FilePolicy*>;

Matches Where(const Matches& policies, const std::function<bool(const FilePolicy&)>& matches) {
  Matches found;
  std::copy_if(policies.begin(), policies.end(), std::back_inserter(found),
               [&](const FilePolicy* policy) { return matches(*policy); });
  return found;
}

// The pool of a policy that reaches this plugin.
std::optional<scaling::PoolKey> PoolOf(const FilePolicy& policy, const TargetNames& ours) {
  if (!ours.contains(policy.target)) return std::nullopt;
  const config::StringMap& values = policy.config.values;
  const auto name = values.find("node_group_name");
  if (name == values.end()) return std::nullopt;
  return scaling::PoolKey{.ns = NamespaceOf(values), .pool = name->second};
}

// The enabled ones if there are any.
Matches EnabledFirst(const Matches& policies) {
  Matches enabled = Where(policies, [](const FilePolicy& policy) { return policy.enabled; });
  return enabled.empty() ? policies : enabled;
}

// The policies of the pool that is named by its node_group_name, or as NAMESPACE/NAME.
Matches OfPool(const Matches& all, const TargetNames& ours, const std::string& pool) {
  return EnabledFirst(Where(all, [&](const FilePolicy& policy) {
    const auto key = PoolOf(policy, ours);
    return key.has_value() && (key->pool == pool || key->ToString() == pool);
  }));
}

// Lines for the files of which no policy is read, after another text.
std::string MistakesText(const std::vector<absl::Status>& mistakes) {
  std::string text = mistakes.empty() ? "" : "\nOf these files no policy is read:";
  for (const absl::Status& mistake : mistakes) text += "\n" + base::Message(mistake);
  return text;
}

absl::StatusOr<const FilePolicy*> ChooseByName(const FilePolicies& read, const Matches& all,
                                               const OperatorFiles& files,
                                               const TargetNames& ours) {
  Matches named = EnabledFirst(
      Where(all, [&](const FilePolicy& policy) { return policy.name == files.policy_name; }));
  if (named.empty()) named = OfPool(all, ours, files.policy_name);
  if (named.empty()) {
    std::vector<std::string> names;
    for (const FilePolicy* policy : all) {
      names.push_back(policy->name);
      if (const auto key = PoolOf(*policy, ours)) names.push_back(key->pool);
    }
    const std::string hint = DidYouMean(base::NearestName(files.policy_name, names));
    std::string text = files.policy + " has no policy or pool \"" + files.policy_name + "\"" + hint;
    if (!all.empty()) text += (hint.empty() ? "; it has" : " It has") + Lines(all);
    return base::InvalidArgument(text + MistakesText(read.mistakes));
  }
  const auto has_first_label = [&](const FilePolicy* policy) {
    return policy->name == named.front()->name;
  };
  if (named.size() > 1 && named.front()->enabled &&
      std::all_of(named.begin(), named.end(), has_first_label)) {
    return base::InvalidArgument(files.policy + " has several policies with the label \"" +
                                 named.front()->name +
                                 "\", and the agent runs each: give one another label or enabled = "
                                 "false, or name its file by --policy" +
                                 Lines(named));
  }
  if (named.size() > 1) {
    return base::InvalidArgument(files.policy + " has several policies \"" + files.policy_name +
                                 "\"; give the label of one of them, or its file by --policy" +
                                 Lines(named));
  }
  // Without the agent's configuration the drivers are unknown.
  if (!files.agent_config.empty() && !ours.contains(named.front()->target)) {
    return base::InvalidArgument(named.front()->where + ": policy \"" + files.policy_name +
                                 "\" has the target \"" + named.front()->target +
                                 "\"; the targets of this plugin are " + Quoted(ours));
  }
  return named.front();
}

absl::StatusOr<const FilePolicy*> ChoosePolicy(const FilePolicies& read, const OperatorFiles& files,
                                               const TargetNames& ours) {
  Matches all;
  for (const FilePolicy& policy : read.policies) all.push_back(&policy);
  if (!files.policy_name.empty()) return ChooseByName(read, all, files, ours);
  if (!read.mistakes.empty()) return read.mistakes.front();
  const Matches candidates = EnabledFirst(
      Where(all, [&](const FilePolicy& policy) { return ours.contains(policy.target); }));
  if (candidates.size() == 1) return candidates.front();
  if (candidates.empty()) {
    return base::InvalidArgument("--policy: " + files.policy + " has no policy with the target " +
                                 Quoted(ours) + (all.empty() ? "" : "; it has" + Lines(all)));
  }
  return base::InvalidArgument("--policy: several policies; name one of them (--policy-name)" +
                               files.hint + Lines(candidates));
}

// Returns the mistakes in files without the chosen policy, with their position but without the line
// itself.
std::vector<std::string> WarningsOf(const std::vector<absl::Status>& mistakes) {
  std::vector<std::string> warnings;
  warnings.reserve(mistakes.size());
  for (const absl::Status& mistake : mistakes) {
    const std::string text = base::Message(mistake);
    warnings.push_back(text.substr(0, text.find('\n')));
  }
  return warnings;
}

std::vector<MetricQuery> QueriesOf(const FilePolicy& policy, const OperatorFiles& files,
                                   const AgentConfig& agent) {
  std::vector<MetricQuery> queries;
  queries.reserve(policy.checks.size());
  for (const PolicyCheck& check : policy.checks) {
    MetricQuery query{.policy = policy.name,
                      .from_zero = policy.type == "cluster" && policy.min == 0,
                      .check = check,
                      .apm = std::nullopt,
                      .apms_are_known = !files.agent_config.empty()};
    const auto apm = agent.apms.find(check.source);
    if (apm != agent.apms.end()) {
      query.apm = apm->second;
    } else {
      query.instead = InsteadOf(check.source, agent.apms);
    }
    queries.push_back(std::move(query));
  }
  return queries;
}

// Adds the refusals that only the agent's configuration reveals. The agent ignores a policy that is
// not enabled.
std::vector<std::string> RefusalsOf(const FilePolicy& policy, const OperatorFiles& files,
                                    const AgentConfig& agent) {
  if (!policy.enabled) return {};
  std::vector<std::string> refusals = policy.refusals;
  for (const PolicyCheck& check : policy.checks) {
    const bool known = check.strategy.empty() || files.agent_config.empty() ||
                       agent.strategies.contains(check.strategy);
    if (known) continue;
    refusals.push_back(check.where + ": the agent has no strategy \"" + check.strategy + "\"" +
                       InsteadOf(check.strategy, agent.strategies));
  }
  return refusals;
}

std::string TextOf(const FilePolicy& policy) {
  return "policy \"" + policy.name + "\" (" + policy.where + ")";
}

std::vector<FilePool> PoolsOf(const std::vector<FilePolicy>& policies, const TargetNames& ours,
                              const AgentConfig& agent) {
  std::vector<FilePool> pools;
  for (const FilePolicy& policy : policies) {
    auto key = PoolOf(policy, ours);
    if (!policy.enabled || !key.has_value()) continue;
    const auto target = agent.targets.find(policy.target);
    pools.push_back({.key = *std::move(key),
                     .label = policy.name,
                     .policy = TextOf(policy),
                     .target = policy.target,
                     .plugin = target == agent.targets.end() ? config::StringMap()
                                                             : target->second.config.values});
  }
  return pools;
}

// True for the agent's policy.dir, and for a file there.
bool IsInPolicyDir(const std::filesystem::path& path, const AgentConfig& agent) {
  std::error_code unreadable;
  const bool is_file = !std::filesystem::is_directory(path, unreadable);
  const std::filesystem::path parent = path.has_parent_path() ? path.parent_path() : ".";
  return std::filesystem::equivalent(is_file ? parent : path, agent.policy_dir, unreadable);
}

// Returns the policies of the other files in the agent's policy.dir, if files.policy is there.
std::vector<FilePolicy> NeighboursOf(const OperatorFiles& files, const AgentConfig& agent) {
  const std::filesystem::path path(files.policy);
  std::error_code unreadable;
  if (std::filesystem::is_directory(path, unreadable) || !IsInPolicyDir(path, agent)) return {};
  const auto& others = files.read->Policies(agent.policy_dir, path.filename());
  return others.ok() ? others->policies : std::vector<FilePolicy>();
}

absl::StatusOr<std::string> ChooseTarget(const TargetNames& ours, const FilePolicy* policy) {
  if (policy != nullptr) return policy->target;
  if (ours.size() == 1) return *ours.begin();
  return base::InvalidArgument(
      "--agent-config: several target blocks have the driver " NOMAD_HARVESTER_PLUGIN_NAME ": " +
      Quoted(ours) + "; give --policy too, whose target names one of them");
}

absl::StatusOr<OperatorFiles> WithPolicyDir(OperatorFiles files, const AgentConfig& agent) {
  if (!files.policy.empty()) return files;
  const bool named = !files.policy_name.empty();
  if (named || files.needs_policy) files.policy = agent.policy_dir;
  if (!named || !files.policy.empty()) return files;
  if (files.agent_config.empty()) {
    return base::InvalidArgument(
        WithoutFiles(files.why_none, files.policy_name, PoolBySet(files.policy_name)));
  }
  return base::InvalidArgument("no policies are read to find " + GivenWord(files.policy_name) +
                               ": " + absl::StrJoin(files.agent_config, ", ") +
                               " has no policy.dir; name them with --policy");
}

// Returns the paths that are read although no option named them; `files` are with the agent's
// policy directory.
std::string FoundOf(const OperatorFiles& given, const OperatorFiles& files) {
  if (given.found_by.empty()) return "";
  std::vector<std::string> paths = given.agent_config;
  if (given.policy.empty() && !files.policy.empty()) paths.push_back(files.policy);
  return absl::StrJoin(paths, " and ");
}

// What the files hold, before a policy is chosen.
struct FileContents {
  OperatorFiles files;  // with the agent's policy directory
  AgentConfig agent;
  TargetNames ours = {NOMAD_HARVESTER_PLUGIN_NAME};
  FilePolicies policies;
  std::string found;  // of FileSettings
};

absl::StatusOr<FileContents> ReadContents(const OperatorFiles& given) {
  FileContents read;
  if (!given.agent_config.empty()) {
    NH_ASSIGN_OR_RETURN(read.agent, given.read->Agent(given.agent_config));
    read.ours = OursOf(read.agent);
    if (read.ours.empty()) {
      return base::InvalidArgument(
          "--agent-config: " + absl::StrJoin(given.agent_config, ", ") +
          " has no target block with the driver " NOMAD_HARVESTER_PLUGIN_NAME "; it has " +
          absl::StrJoin(read.agent.targets, ", ", [](std::string* text, const auto& target) {
            *text += target.first + " (driver " + target.second.driver + ")";
          }));
    }
  }
  NH_ASSIGN_OR_RETURN(read.files, WithPolicyDir(given, read.agent));
  read.found = FoundOf(given, read.files);
  if (read.files.policy.empty()) return read;
  const auto& policies = given.read->Policies(read.files.policy);
  if (absl::IsNotFound(policies.status()) && given.policy.empty()) {
    return base::Annotate(policies.status(), "policy.dir of " +
                                                 absl::StrJoin(given.agent_config, ", ") +
                                                 " (--policy names another place)");
  }
  NH_ASSIGN_OR_RETURN(read.policies, policies);
  return read;
}

// Adds where the agent's files come from.
absl::Status WithOrigin(const absl::Status& problem, const OperatorFiles& given) {
  if (problem.ok() || given.found_by.empty()) return problem;
  return base::MakeStatus(problem.code(),
                          base::Message(problem) +
                              "\nwithout --agent-config the agent's files are those of " +
                              given.found_by + "; --agent-config names others, and an empty " +
                              kAgentConfigVariable + " none");
}

void AddTo(FileSettings* settings, config::StringMap FileSettings::*map, const FileMap& from) {
  (settings->*map) = from.values;
  settings->origins.insert(from.origins.begin(), from.origins.end());
}

// With the policy that read.files choose.
absl::StatusOr<FileSettings> SettingsOf(const FileContents& read) {
  const auto& [files, agent, ours, policies, found] = read;
  FileSettings settings{
      .warnings = agent.warnings, .unknown = agent.unknown, .plugin_dir = agent.plugin_dir};
  settings.hint = files.hint;
  settings.why_none = files.why_none;
  settings.files = agent.files;
  Append(policies.files, &settings.files);
  settings.found = found;
  for (const auto& [name, apm] : agent.apms) {
    if (apm.driver == NOMAD_HARVESTER_PLUGIN_NAME) settings.apms[name] = apm.config.values;
  }
  const FilePolicy* policy = nullptr;
  if (!files.policy.empty()) {
    Append(policies.warnings, &settings.warnings);
    NH_ASSIGN_OR_RETURN(policy, ChoosePolicy(policies, files, ours));
    Append(WarningsOf(policies.mistakes), &settings.warnings);
    AddTo(&settings, &FileSettings::policy, policy->config);
    settings.policy_name = policy->name;
    settings.policy_where = policy->where;
    settings.queries = QueriesOf(*policy, files, agent);
    settings.refusals = RefusalsOf(*policy, files, agent);
    Append(policy->unknown, &settings.unknown);
    settings.target = policy->target;
    std::vector<FilePolicy> of_agent = policies.policies;
    Append(NeighboursOf(files, agent), &of_agent);
    settings.pools = PoolsOf(of_agent, ours, agent);
    for (const FilePolicy& other : of_agent) {
      if (!other.enabled || !ours.contains(other.target) || other.where == policy->where) continue;
      Append(QueriesOf(other, files, agent), &settings.other_queries);
    }
    if (policy->enabled) {
      settings.limits = {.policy = TextOf(*policy), .min = policy->min, .max = policy->max};
    } else {
      settings.warnings.push_back(policy->where + ": policy \"" + policy->name +
                                  "\" is not enabled: the agent does not scale its pool");
    }
  }
  if (!files.agent_config.empty()) {
    NH_ASSIGN_OR_RETURN(settings.target, ChooseTarget(ours, policy));
    AddTo(&settings, &FileSettings::plugin, agent.targets.at(settings.target).config);
    const std::string config = absl::StrJoin(files.agent_config, ", ");
    if (agent.plugin_dir.path.empty()) settings.plugin_dir.where = config;
    if (agent.policy_dir.empty()) {
      settings.policy_dir_doubt =
          config + " has no policy.dir: the agent reads no file of policies";
    } else if (policy != nullptr && !IsInPolicyDir(files.policy, agent)) {
      settings.policy_dir_doubt = files.policy + " is not in policy.dir, " + agent.policy_dir +
                                  ": the agent does not read it";
    }
  }
  Append(settings.unknown, &settings.warnings);
  return settings;
}

// The error begins with the file, or with a position in it.
UnreadPolicy UnreadFile(const absl::Status& mistake) {
  const std::string text = base::Message(mistake);
  const std::string line = text.substr(0, text.find('\n'));
  const std::pair<std::string, std::string> parts = absl::StrSplit(line, absl::MaxSplits(": ", 1));
  return {.label = "", .where = parts.first, .ns = "", .problem = parts.second};
}

// Says of a policy that reaches no plugin which target it may mean.
std::optional<std::string> NearestTarget(const FilePolicy& policy, const FileContents& read) {
  if (!policy.enabled || read.agent.targets.contains(policy.target)) return std::nullopt;
  return base::NearestName(policy.target, {read.ours.begin(), read.ours.end()});
}

absl::StatusOr<FilesOfAll> ReadAll(const OperatorFiles& given) {
  NH_ASSIGN_OR_RETURN(FileContents read, ReadContents(given));
  if (read.files.policy.empty()) {
    return base::InvalidArgument(
        "the pools of all policies are asked for; give the agent's files: --agent-config with "
        "policy.dir, or --policy");
  }
  FilesOfAll all;
  for (const absl::Status& mistake : read.policies.mistakes) {
    all.unread.push_back(UnreadFile(mistake));
  }
  read.policies.mistakes.clear();  // each policy would warn of them
  std::map<std::string, const FilePolicy*> ours;
  for (const FilePolicy& policy : read.policies.policies) {
    if (read.ours.contains(policy.target)) {
      if (policy.enabled) ours.emplace(policy.name, &policy);
    } else if (const auto nearest = NearestTarget(policy, read)) {
      all.unread.push_back({.label = policy.name,
                            .where = policy.where,
                            .ns = NamespaceOf(policy.config.values),
                            .problem = "no target block of this plugin is named \"" +
                                       policy.target + "\"" + DidYouMean(nearest)});
    }
  }
  for (const auto& [name, policy] : ours) {
    read.files.policy_name = name;
    auto settings = SettingsOf(read);
    if (settings.ok()) {
      all.policies.push_back(*std::move(settings));
    } else {
      all.unread.push_back({.label = name,
                            .where = policy->where,
                            .ns = "",
                            .problem = base::Message(settings.status())});
    }
  }
  return all;
}

}  // namespace

const absl::StatusOr<AgentConfig>& ReadFiles::Agent(const std::vector<std::string>& paths) {
  const auto known = agents_.find(paths);
  return known != agents_.end() ? known->second
                                : agents_.emplace(paths, ReadAgentConfig(paths)).first->second;
}

const absl::StatusOr<FilePolicies>& ReadFiles::Policies(const std::string& path,
                                                        const std::string& but) {
  const auto known = policies_.find({path, but});
  if (known != policies_.end()) return known->second;
  return policies_.emplace(std::pair(path, but), ReadPolicies(path, but)).first->second;
}

std::string NamespaceOf(const config::StringMap& target) {
  const auto ns = target.find("namespace");
  return ns != target.end() ? ns->second : config::PoolPolicy().ns;
}

std::string UnreadPolicy::Name() const {
  if (!label.empty()) return "policy " + label;
  return std::filesystem::path(where).filename().string();
}

std::string UnreadPolicy::Text() const {
  return (where.empty() ? "" : where + ": ") + base::OneLine(problem);
}

std::string FilePool::Harvester(const config::StringMap& environment) const {
  config::StringMap connection;
  for (const auto& [key, value] : plugin) {
    if (key == "harvester_url" || key.starts_with("harvester_kubeconfig")) connection[key] = value;
  }
  const auto config = config::ParsePluginConfig(connection, environment);
  if (config.ok()) {
    const auto harvester = kube::ResolveConnection(config->harvester);
    if (harvester.ok()) {
      const auto url = http::ParseBaseUrl(harvester->curl.base_url);
      if (url.ok()) return url->Url();
    }
  }
  return "target " + target;
}

std::vector<SharedPool> FileSettings::SharedPools(const config::StringMap& environment) const {
  std::map<std::pair<scaling::PoolKey, std::string>, std::vector<std::string>> policies;
  for (const FilePool& pool : pools) {
    policies[{pool.key, pool.Harvester(environment)}].push_back(pool.policy);
  }
  std::vector<SharedPool> shared;
  for (const auto& [pool, of_pool] : policies) {
    if (of_pool.size() < 2) continue;
    const bool by_this =
        limits.has_value() && std::count(of_pool.begin(), of_pool.end(), limits->policy) > 0;
    shared.push_back({.key = pool.first,
                      .text = absl::StrJoin(of_pool, " and ") +
                              " scale the same pool: they overwrite each other's count",
                      .by_this = by_this});
  }
  return shared;
}

std::string FileSettings::SharedText(const config::StringMap& environment) const {
  for (const SharedPool& shared : SharedPools(environment)) {
    if (shared.by_this) return shared.text;
  }
  return "";
}

std::string FileSettings::PolicyOf(const scaling::PoolKey& key, const std::string& id) const {
  std::set<std::string> labels;
  for (const FilePool& pool : pools) {
    if (pool.key == key) labels.insert(pool.label);
  }
  return labels.size() == 1 ? *labels.begin() : id;
}

std::set<scaling::PoolKey> PoolsOfHarvester(const FileSettings& files,
                                            const config::StringMap& plugin,
                                            const config::StringMap& environment) {
  const std::string harvester =
      FilePool{.target = files.target, .plugin = plugin}.Harvester(environment);
  std::set<scaling::PoolKey> pools;
  for (const FilePool& pool : files.pools) {
    const bool is_here = pool.target == files.target || pool.Harvester(environment) == harvester;
    if (is_here) pools.insert(pool.key);
  }
  return pools;
}

bool IsOurs(const MetricQuery& query) {
  return query.apm.has_value() && query.apm->driver == NOMAD_HARVESTER_PLUGIN_NAME;
}

OperatorFiles FindAgentFiles(OperatorFiles given, const config::StringMap& environment,
                             const std::string& directory) {
  if (!given.agent_config.empty()) return given;
  if (const auto named = environment.find(kAgentConfigVariable); named != environment.end()) {
    given.agent_config = absl::StrSplit(named->second, ':', absl::SkipEmpty());
    if (!given.agent_config.empty()) {
      given.found_by = kAgentConfigVariable;
    } else {
      given.why_none = kAgentConfigVariable + std::string(" is empty");
    }
  } else if (HasAgentFiles(directory)) {
    given.agent_config = {directory};
    given.found_by = directory;
  } else {
    std::error_code unknown;
    given.why_none =
        directory + (std::filesystem::exists(directory, unknown) ? " has no files *.hcl or *.json"
                                                                 : " does not exist");
  }
  return given;
}

std::string NoFilesText(const std::string& why_none) {
  return "no files of the agent are read" + (why_none.empty() ? "" : " (" + why_none + ")");
}

std::string WithoutFiles(const std::string& why_none, const std::string& pool,
                         const std::string& instead) {
  return NoFilesText(why_none) +
         (pool.empty() ? "" : ", so that " + GivenWord(pool) + " is no pool here") +
         ": name them with --agent-config, or " + instead;
}

std::string PoolBySet(const std::string& pool) {
  const bool is_name = !pool.empty() && !MayBeSecret(pool) && pool.find('/') == std::string::npos;
  return "the pool with --set node_group_name=" + (is_name ? Printable(pool) : "NAME");
}

absl::StatusOr<std::vector<std::string>> PolicyNames(OperatorFiles files) {
  files.needs_policy = true;
  NH_ASSIGN_OR_RETURN(const FileContents read, ReadContents(files));
  std::vector<std::string> names;
  for (const FilePolicy& policy : read.policies.policies) names.push_back(policy.name);
  return names;
}

void TakePolicyName(OperatorFiles* files, std::vector<std::string>* words) {
  if (words->empty() || !files->policy_name.empty()) return;
  OperatorFiles all = *files;
  all.needs_policy = true;
  const auto read = ReadContents(all);
  if (!read.ok()) {
    files->unread = "\n" + base::Message(WithOrigin(read.status(), all));
    return;
  }
  Matches enabled;
  std::vector<std::string> names;
  std::vector<std::string> disabled;
  for (const FilePolicy& policy : read->policies.policies) {
    if (policy.enabled) enabled.push_back(&policy);
    (policy.enabled ? names : disabled).push_back(policy.name);
  }
  auto name = std::find_first_of(words->begin(), words->end(), names.begin(), names.end());
  if (name == words->end()) {
    name = std::find_if(words->begin(), words->end(), [&](const std::string& word) {
      return !OfPool(enabled, read->ours, word).empty();
    });
  }
  if (name == words->end()) {
    name = std::find_first_of(words->begin(), words->end(), disabled.begin(), disabled.end());
  }
  if (name != words->end()) {
    files->policy_name = *name;
    words->erase(name);
    return;
  }
  files->unread = MistakesText(read->policies.mistakes);
  files->labels = names;
  for (const FilePolicy* policy : enabled) {
    if (const auto key = PoolOf(*policy, read->ours)) names.push_back(key->pool);
  }
  for (const std::string& word : *words) {
    if (!files->hint.empty()) return;
    files->hint = DidYouMean(base::NearestName(word, names));
  }
}

absl::StatusOr<FileSettings> ReadOperatorFiles(const OperatorFiles& given) {
  const auto read = ReadContents(given);
  if (!read.ok()) return WithOrigin(read.status(), given);
  auto settings = SettingsOf(*read);
  if (!settings.ok()) return WithOrigin(settings.status(), given);
  return settings;
}

absl::StatusOr<FilesOfAll> ReadFilesOfAll(OperatorFiles given) {
  given.needs_policy = true;
  auto all = ReadAll(given);
  if (!all.ok()) return WithOrigin(all.status(), given);
  return all;
}

}  // namespace nomad_harvester::cli
