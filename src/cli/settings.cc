// SPDX-License-Identifier: Apache-2.0
#include "settings.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <string_view>
#include <system_error>
#include <utility>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/base/text.h"
#include "nomad_harvester/config/option_table.h"
#include "nomad_harvester/scaling/template_check.h"

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "text.h"

namespace nomad_harvester::cli {
namespace {

using config::StringMap;

constexpr char kPool[] = "node_group_name";
constexpr char kNamespace[] = "namespace";
// The keys that a policy needs to create VMs, with placeholder values that are never used.
constexpr std::pair<const char*, const char*> kForNewVms[] = {{"image", "default/none"},
                                                              {"cpu_request", "1"},
                                                              {"memory_request", "1Gi"},
                                                              {"networks", "management"}};

struct Blocks {
  StringMap plugin;
  StringMap policy;
};

using Problems = std::vector<std::string>;

std::string Hint(const std::string& key) {
  std::vector<std::string> known;
  for (const config::Option& option : config::OptionTable()) known.emplace_back(option.key);
  const std::optional<std::string> nearest = config::NearestKey(key, known);
  return nearest.has_value() ? "did you mean " + *nearest + "?"
                             : "docs/configuration.md has every key";
}

Blocks Split(const std::vector<std::string>& pairs, Problems* problems) {
  Blocks blocks;
  int number = 0;
  for (const std::string& pair : pairs) {
    ++number;
    const std::size_t equals = pair.find('=');
    const std::string key = pair.substr(0, equals);
    if (equals == std::string::npos || key.empty()) {
      // The text is not quoted, because it may be a secret given without its key.
      problems->push_back("--set: expected KEY=VALUE, but number " + std::to_string(number) +
                          " has no " + (key.empty() ? "key" : "\"=\""));
      continue;
    }
    const bool of_plugin = config::FindOption(config::Section::kPlugin, key) != nullptr;
    if (!of_plugin && config::FindOption(config::Section::kPolicy, key) == nullptr) {
      problems->push_back(Printable(key) + ": unknown key; " + Hint(key));
      continue;
    }
    // The last pair with a key wins.
    (of_plugin ? blocks.plugin : blocks.policy)[key] = pair.substr(equals + 1);
  }
  return blocks;
}

StringMap Merged(const StringMap& over, const StringMap& under) {
  StringMap merged = over;
  merged.insert(under.begin(), under.end());
  return merged;
}

std::map<std::string, std::string> OriginsOf(const FileSettings& files, const Blocks& given) {
  std::map<std::string, std::string> origins = files.origins;
  for (const StringMap* block : {&given.plugin, &given.policy}) {
    for (const auto& [key, value] : *block) origins.erase(key);
  }
  return origins;
}

bool NamesThePool(const std::string& key) { return key == kPool || key == kNamespace; }

bool HoldsPolicy(const StringMap& policy) {
  return std::any_of(policy.begin(), policy.end(),
                     [](const auto& entry) { return !NamesThePool(entry.first); });
}

// Keys that name the same credential, or the cluster that another key names: if the first is given,
// the second one's environment variable has no effect.
constexpr std::pair<const char*, const char*> kReplaces[] = {
    {"auth_token", "auth_token_file"},
    {"auth_token_file", "auth_token"},
    {"nomad_token", "nomad_token_file"},
    {"nomad_token_file", "nomad_token"},
    {"harvester_kubeconfig", "harvester_url"},
    {"harvester_kubeconfig", "auth_token"},
    {"harvester_kubeconfig", "auth_token_file"},
    {"harvester_kubeconfig", "harvester_ca_cert"},
    {"harvester_kubeconfig", "harvester_kubeconfig_context"},
    {"harvester_kubeconfig", "harvester_client_cert"},
    {"harvester_kubeconfig", "harvester_client_key"},
    {"harvester_kubeconfig", "harvester_tls_server_name"},
    {"harvester_kubeconfig", "harvester_skip_verify"}};

std::vector<std::string> VariablesOf(std::string_view key) {
  const config::Option* const option = config::FindOption(config::Section::kPlugin, key);
  if (option == nullptr) return {};
  return absl::StrSplit(base::ToAbsl(option->environment), ',', absl::SkipEmpty());
}

// Removes variables that --set overrides, because the plugin, which knows no --set, prefers some
// variables to its block.
StringMap EnvironmentUnder(const StringMap& given, StringMap environment) {
  for (const auto& [key, value] : given) {
    for (const std::string& name : VariablesOf(key)) environment.erase(name);
    for (const auto& [replacing, replaced] : kReplaces) {
      if (key != replacing) continue;
      for (const std::string& name : VariablesOf(replaced)) environment.erase(name);
    }
  }
  return environment;
}

// Returns `given` on top of the files' block, in which two keys may name one credential.
StringMap PluginBlockOf(const StringMap& given, StringMap files) {
  for (const auto& [replacing, replaced] : kReplaces) {
    if (given.contains(replacing)) files.erase(replaced);
  }
  return Merged(given, files);
}

// Returns the first of these variables that is set; empty: none is.
std::string FirstSet(const std::vector<std::string>& names, const StringMap& environment) {
  for (const std::string& name : names) {
    if (!base::ValueOf(environment, name).empty()) return name;
  }
  return "";
}

// Warns about each key for which a file and the environment have different values, and names the
// one that is used. Does not show values, which may be secrets.
void WarnOfDifferences(const FileSettings& files, const StringMap& given,
                       const StringMap& environment, std::vector<std::string>* warnings) {
  for (const auto& [key, value] : files.plugin) {
    const config::Option* const option = config::FindOption(config::Section::kPlugin, key);
    if (option == nullptr || value.empty() || given.contains(key)) continue;
    std::string variable = FirstSet(VariablesOf(key), environment);
    if (!variable.empty() && environment.at(variable) == value) continue;
    if (variable.empty() && (key == "auth_token" || key == "auth_token_file")) {
      variable = FirstSet(VariablesOf(key == "auth_token" ? "auth_token_file" : "auth_token"),
                          environment);
    }
    if (variable.empty()) continue;
    const auto origin = files.origins.find(key);
    const std::string file = origin == files.origins.end() ? "the file" : origin->second;
    variable += " of the environment";
    warnings->push_back(key + ": using " + (option->environment_wins ? variable : file) +
                        "; ignoring " + (option->environment_wins ? file : variable) +
                        " (different); --set " + key + "=VALUE overrides both");
  }
}

// Warns about the origin of settings: a secret is visible, or a file and the environment differ.
void WarnOf(const FileSettings& files, const StringMap& plugin, const StringMap& environment,
            std::vector<std::string>* warnings) {
  WarnOfDifferences(files, plugin, environment, warnings);
  for (const auto& [key, value] : plugin) {
    const config::Option* const option = config::FindOption(config::Section::kPlugin, key);
    if (option == nullptr || option->type != config::OptionType::kSecret || value.empty()) continue;
    warnings->push_back(key +
                        ": a secret given by --set is in the process list, which every user of "
                        "this machine may read; set " +
                        std::string(option->environment) + " in the environment instead");
  }
}

// How to give keys to a command that got no policy file.
std::string WhoHasKeys(const FileSettings& files) {
  return (files.why_none.empty() ? "" : NoFilesText(files.why_none) + "; ") +
         "missing keys come from the agent's files, --agent-config FILE and --policy FILE, or one "
         "by one from --set KEY=VALUE";
}

// Inspects problems, whose lines begin with their keys.
bool TellsOfMissingKey(const std::string& problems, const StringMap& values) {
  const std::vector<std::string> lines = absl::StrSplit(problems, '\n');
  return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
    return line.find("required") != std::string::npos &&
           !values.contains(line.substr(0, line.find(':')));
  });
}

void TakeMissingCas(const std::map<std::string, std::string>& origins, Settings* settings) {
  for (const char* const key : {"harvester_ca_cert", "nomad_ca-cert", "nomad_ca-path"}) {
    const auto given = settings->plugin_block.find(key);
    std::error_code unreadable;
    if (given == settings->plugin_block.end() || given->second.empty() ||
        std::filesystem::status(given->second, unreadable).type() !=
            std::filesystem::file_type::not_found) {
      continue;
    }
    const auto origin = origins.find(key);
    settings->missing_cas.emplace_back(
        key, "no such file: " + Printable(given->second) +
                 (origin == origins.end() ? "" : " (" + origin->second + ")"));
    settings->plugin_block.erase(given);
  }
}

bool HasKey(const std::vector<std::string>& pairs, const std::string& key) {
  return std::any_of(pairs.begin(), pairs.end(),
                     [&](const std::string& pair) { return pair.starts_with(key + "="); });
}

}  // namespace

bool NamesPool(const std::vector<std::string>& pairs) { return HasKey(pairs, kPool); }
bool NamesNamespace(const std::vector<std::string>& pairs) { return HasKey(pairs, kNamespace); }

std::string WithOrigins(const std::string& problems,
                        const std::map<std::string, std::string>& origins) {
  std::vector<std::string> lines = absl::StrSplit(problems, '\n');
  for (std::string& line : lines) {
    const std::string& origin = base::ValueOf(origins, line.substr(0, line.find(':')));
    if (!origin.empty()) line += " (" + origin + ")";
  }
  return absl::StrJoin(lines, "\n");
}

absl::StatusOr<PluginSettings> ReadPluginSettings(const std::vector<std::string>& pairs,
                                                  const FileSettings& files,
                                                  const StringMap& environment) {
  Problems problems;
  const Blocks given = Split(pairs, &problems);
  for (const auto& [key, value] : given.policy) {
    problems.push_back(key + ": belongs in the query or in the policy's target block");
  }
  if (!problems.empty()) return base::InvalidArgument(absl::StrJoin(problems, "\n"));
  PluginSettings settings{.block = PluginBlockOf(given.plugin, files.plugin),
                          .warnings = files.warnings,
                          .origins = OriginsOf(files, given),
                          .environment = EnvironmentUnder(given.plugin, environment)};
  // See ReadSettings.
  if (!given.plugin.contains("log_level")) settings.block.erase("log_level");
  WarnOf(files, given.plugin, settings.environment, &settings.warnings);
  return settings;
}

absl::StatusOr<Settings> ReadSettings(const std::vector<std::string>& pairs,
                                      const FileSettings& files, PolicyUse use,
                                      const StringMap& environment) {
  Problems problems;
  const Blocks given = Split(pairs, &problems);
  const std::map<std::string, std::string> origins = OriginsOf(files, given);
  Settings settings;
  settings.plugin_block = PluginBlockOf(given.plugin, files.plugin);
  settings.environment = EnvironmentUnder(given.plugin, environment);
  settings.files = files;
  settings.pools_of_files = PoolsOfHarvester(files, settings.plugin_block, settings.environment);
  settings.origins = origins;
  settings.policy_block = Merged(given.policy, files.policy);
  if (use == PolicyUse::kChecked) TakeMissingCas(origins, &settings);
  auto plugin = config::ParsePluginConfig(settings.plugin_block, settings.environment);
  bool lacks_keys = false;
  if (!plugin.ok()) {
    const std::string text = base::Message(plugin.status());
    problems.push_back(WithOrigins(text, origins));
    lacks_keys = files.plugin.empty() && TellsOfMissingKey(text, settings.plugin_block);
  }
  StringMap values = settings.policy_block;
  // A mistake in the others must not keep anybody from pausing the pool.
  if (use == PolicyUse::kPool) {
    std::erase_if(values, [](const auto& entry) { return !NamesThePool(entry.first); });
  }
  const bool whole = use != PolicyUse::kOptional || HoldsPolicy(values);
  settings.pool = base::ValueOf(values, kPool);
  settings.defines_vms =
      values.contains("vm_template") ||
      std::all_of(std::begin(kForNewVms), std::end(kForNewVms),
                  [&](const auto& entry) { return values.contains(entry.first); });
  const bool is_whole = use == PolicyUse::kWhole || use == PolicyUse::kChecked;
  // A template defines them itself.
  if (!is_whole && !values.contains("vm_template")) {
    values.insert(std::begin(kForNewVms), std::end(kForNewVms));
  }
  // A pool without its policy: apply the same rules to its two keys.
  if (!whole) values.insert({{kPool, "any"}, {"node_class", "any"}});
  if (use == PolicyUse::kPool) values.insert({"node_class", "any"});
  config::TemplateCheck check_template;
  if (is_whole && plugin.ok()) {
    check_template = std::bind_front(&scaling::CheckTemplate, std::cref(*plugin));
  }
  auto policy = config::ParsePoolPolicy(values, check_template);
  if (!policy.ok()) {
    const std::string text = base::Message(policy.status());
    problems.push_back(WithOrigins(text, origins));
    lacks_keys |= files.policy.empty() && TellsOfMissingKey(text, values);
  }
  if (lacks_keys) problems.push_back(WhoHasKeys(files));
  if (!problems.empty()) return base::InvalidArgument(absl::StrJoin(problems, "\n"));
  settings.plugin = *std::move(plugin);
  // The files' level is for the plugin under the agent, which filters its lines.
  if (!given.plugin.contains("log_level")) settings.plugin.log_level.clear();
  WarnOf(files, given.plugin, settings.environment, &settings.plugin.warnings);
  settings.plugin.warnings.insert(settings.plugin.warnings.end(), files.warnings.begin(),
                                  files.warnings.end());
  settings.ns = policy->ns;
  if (whole) settings.policy = *std::move(policy);
  return settings;
}

}  // namespace nomad_harvester::cli
