// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/base/text.h"
#include "nomad_harvester/config/option_table.h"
#include "nomad_harvester/config/plugin_config.h"
#include "nomad_harvester/demand/query.h"
#include "nomad_harvester/nodepool/identity.h"
#include "nomad_harvester/policy/strategies.h"
#include "nomad_harvester/scaling/check.h"
#include "nomad_harvester/scaling/plan.h"
#include "nomad_harvester/scaling/pool_lease.h"
#include "nomad_harvester/scaling/snapshot.h"

#include "absl/strings/str_join.h"
#include "command.h"
#include "nlohmann/json.hpp"
#include "pool_status.h"
#include "terminal.h"
#include "text.h"

namespace nomad_harvester::cli {
namespace {

using scaling::CheckOutcome;
using scaling::CheckResult;
using Json = nlohmann::ordered_json;

// In the order of CheckOutcome.
struct OutcomeNames {
  std::string_view word;     // in a line
  std::string_view in_json;  // part of the contract
  std::string_view counted;  // in the summary
};
constexpr std::array<OutcomeNames, 5> kOutcomes = {{{"ok", "pass", "ok"},
                                                    {"FAIL", "fail", "failed"},
                                                    {"warn", "warn", "warned"},
                                                    {"unknown", "unknown", "unknown"},
                                                    {"skip", "skipped", "skipped"}}};

const OutcomeNames& NamesOf(CheckOutcome outcome) {
  return kOutcomes[static_cast<std::size_t>(outcome)];
}

bool Passes(const std::vector<CheckResult>& results) {
  return std::none_of(results.begin(), results.end(), [](const CheckResult& result) {
    return result.outcome == CheckOutcome::kFail;
  });
}

// "12 ok, 1 failed, 2 unknown".
std::string Summary(const std::vector<CheckResult>& results) {
  std::string text;
  for (std::size_t i = 0; i < kOutcomes.size(); ++i) {
    const auto count = std::count_if(
        results.begin(), results.end(),
        [i](const CheckResult& result) { return static_cast<std::size_t>(result.outcome) == i; });
    if (count == 0 && i != 0) continue;
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " " +
            std::string(kOutcomes[i].counted);
  }
  return text;
}

constexpr std::size_t kWordWidth = 9;

// Returns the subjects of the results, starting at `first`, that are skipped for the same reason: a
// system that does not answer takes one line, not fifteen.
std::vector<std::string> SkippedWith(const std::vector<CheckResult>& results, std::size_t first) {
  std::vector<std::string> subjects;
  for (std::size_t i = first; i < results.size(); ++i) {
    const bool same =
        results[i].outcome == CheckOutcome::kSkipped && results[i].text == results[first].text;
    if (!same) break;
    subjects.push_back(results[i].subject);
  }
  return subjects;
}

std::string TextOf(const std::vector<CheckResult>& results) {
  std::string text;
  for (std::size_t i = 0; i < results.size();) {
    const CheckResult& result = results[i];
    const std::vector<std::string> skipped = SkippedWith(results, i);
    std::string word(NamesOf(result.outcome).word);
    word.resize(kWordWidth, ' ');
    text += word +
            Printable(base::OneLine((skipped.empty() ? result.subject : FirstFew(skipped)) + ": " +
                                    result.text)) +
            "\n";
    if (!result.cure.empty()) {
      text += std::string(kWordWidth, ' ') + "-> " + Printable(base::OneLine(result.cure)) + "\n";
    }
    i += std::max<std::size_t>(skipped.size(), 1);
  }
  return text + Summary(results) + "\n";
}

Json DocumentOf(const std::vector<CheckResult>& results) {
  Json checks = Json::array();
  for (const CheckResult& result : results) {
    checks.push_back({{"id", result.id},
                      {"subject", result.subject},
                      {"outcome", NamesOf(result.outcome).in_json},
                      {"text", result.text},
                      {"cure", result.cure}});
  }
  return {{"ok", Passes(results)}, {"checks", std::move(checks)}};
}

std::string TextOf(const MetricQuery& query) {
  return "check \"" + query.check.name + "\" of policy \"" + query.policy + "\"";
}

// Checks the query of one policy check as far as the files show it. Only the agent runs it.
// `nodes`: those of the target block.
CheckResult ResultOf(const MetricQuery& query, const nodepool::PoolIdentity& nodes,
                     const PluginDirectory& plugin_dir) {
  const PolicyCheck& check = query.check;
  const auto result = [&](CheckOutcome outcome, const std::string& text, const std::string& cure) {
    return CheckResult{"metrics.query", TextOf(query), outcome, text, cure};
  };
  // Judged by the name alone (hashicorp/nomad-autoscaler:policy/mutators.go, NomadAPMMutator).
  if (check.source == "nomad-apm" && query.from_zero) {
    return result(CheckOutcome::kWarn,
                  "its source is Nomad's own data (nomad-apm), which cannot scale from zero: the "
                  "agent raises min to 1",
                  "set min = 1, or another source");
  }
  // hashicorp/nomad-autoscaler:policy/handler.go, loadCheckRunners.
  if (check.strategy == "fixed-value") {
    return result(CheckOutcome::kPass, "its strategy is fixed-value: the agent asks no source", "");
  }
  const std::string source = "\"" + check.source + "\"";
  if (!query.apms_are_known) {
    return result(CheckOutcome::kUnknown, "its source is " + source + ", of which nothing is known",
                  "give the agent's configuration, too: --agent-config");
  }
  if (!query.apm.has_value()) {
    return result(CheckOutcome::kFail,
                  "the agent's configuration has no apm block " + source + ", which is its source" +
                      query.instead,
                  "add the block, or correct source");
  }
  const auto& [driver, args, config] = *query.apm;
  if (IsOurs(query)) {
    // Otherwise the process is a target, whose type is not the block's.
    if (args != std::vector<std::string>{"apm"}) {
      return result(
          CheckOutcome::kFail,
          "the agent does not start: the apm block " + source + " starts this plugin as a target",
          "args = [\"apm\"]");
    }
    const auto ours = config::ParseApmConfig(config.values, {});
    if (!ours.ok()) {
      return result(CheckOutcome::kFail,
                    "the agent does not start: the config of the apm block " + source + ": " +
                        base::OneLine(base::Message(ours.status())),
                    "correct it; docs/demand.md names its keys");
    }
    const auto parsed = demand::ParseQuery(check.query);
    if (!parsed.ok()) {
      return result(CheckOutcome::kFail, base::OneLine(base::Message(parsed.status())),
                    "correct query; docs/demand.md has its grammar");
    }
    if (parsed->subject != demand::Subject::kNodesNeeded && !ours->harvester.has_server()) {
      return result(
          CheckOutcome::kFail,
          "its query asks Harvester, and the apm block " + source + " has no connection to it",
          "add harvester_url and auth_token_file, or harvester_kubeconfig, to its config");
    }
    if (parsed->subject == demand::Subject::kRoom) {
      return result(CheckOutcome::kWarn,
                    "its query is the number of VMs for which there is room, not a count of nodes",
                    "nodes-needed, or overflow for what another pool cannot take");
    }
    const nodepool::PoolIdentity asked = parsed->Identity();
    if (asked != nodes) {
      return result(Contradict(asked, nodes) ? CheckOutcome::kFail : CheckOutcome::kWarn,
                    "its query counts nodes with " + asked.ToString() +
                        ", but the target block scales nodes with " + nodes.ToString(),
                    "write in query and in the target block the same node_class, datacenter and "
                    "node_pool");
    }
    // Of one that the agent does not have, the policy's line says so.
    if (check.strategy == "target-value" || check.strategy == "threshold") {
      return result(
          CheckOutcome::kWarn,
          "its query is the number of nodes that the work needs, of which its strategy \"" +
              check.strategy + "\" makes another one",
          "strategy \"pass-through\" {}");
    }
    return result(CheckOutcome::kPass,
                  "asks this plugin; nomad-harvester demand shows what it answers", "");
  }
  // hashicorp/nomad-autoscaler:plugins/manager/manager.go, useInternal.
  const bool built_in = driver == "nomad-apm" || driver == "prometheus" || driver == "datadog";
  std::error_code error;
  const std::filesystem::path dir(plugin_dir.path);
  if (!built_in && !dir.empty() && std::filesystem::is_directory(dir, error) &&
      std::filesystem::status(dir / driver, error).type() ==
          std::filesystem::file_type::not_found) {
    return result(CheckOutcome::kFail,
                  "the agent does not start: the apm block " + source + " has the driver " +
                      driver + ", and plugin_dir (" + plugin_dir.where + ") has no such executable",
                  "did you mean driver = \"harvester\"?");
  }
  // hashicorp/nomad-autoscaler:plugins/builtin/apm/prometheus/plugin/plugin.go, SetConfig.
  if (driver == "prometheus" && base::ValueOf(config.values, "address").empty()) {
    return result(CheckOutcome::kFail, "the apm block " + source + " has no address",
                  "add the address of Prometheus to the block");
  }
  return result(CheckOutcome::kUnknown,
                "only the agent asks its source " + source + " (driver " + driver + ")", "");
}

// Two pools that count the same nodes grow for the same work.
std::vector<CheckResult> ResultsOfSameNodes(const MetricQuery& query,
                                            const std::vector<MetricQuery>& others) {
  std::vector<CheckResult> results;
  if (!IsOurs(query)) return results;
  const auto own = demand::ParseQuery(query.check.query);
  if (!own.ok() || own->subject == demand::Subject::kRoom) return results;
  for (const MetricQuery& other : others) {
    if (!IsOurs(other)) continue;
    const auto parsed = demand::ParseQuery(other.check.query);
    if (!parsed.ok() || parsed->subject == demand::Subject::kRoom) continue;
    if (Contradict(own->Identity(), parsed->Identity())) continue;
    results.push_back({"metrics.same_nodes", TextOf(query), CheckOutcome::kWarn,
                       "its query (" + query.check.where + ") and that of " + TextOf(other) + " (" +
                           other.check.where +
                           ") may count the same nodes: both pools then grow for one job",
                       "give each pool a node_class, datacenter or node_pool of its own, "
                       "in query and target block"});
  }
  return results;
}

// The agent's query fails without these rights, and then nothing is scaled (rule D4).
CheckResult ResultOfApm(const CheckedApm& apm, const runtime::Context& context) {
  CheckResult result{"metrics.rights", "rights of the apm block \"" + apm.name + "\"",
                     CheckOutcome::kPass,
                     "its token may read nodes, and the jobs of every namespace", ""};
  const absl::Status read = apm.read(context.WithTimeout(kOperatorBudget));
  if (read.ok()) return result;
  result.outcome = CheckOutcome::kFail;
  result.text = NomadText(apm.nomad) + ": " + base::Message(read);
  result.cure = CureOfDemand(read, apm.nomad);
  return result;
}

// The same of the pools of Harvester that the queries to it name (rules D6 and D7).
std::vector<CheckResult> ResultsOfRoom(const CheckedApm& apm,
                                       const std::vector<MetricQuery>& queries,
                                       const runtime::Context& context) {
  std::vector<CheckResult> results;
  for (const MetricQuery& query : queries) {
    if (!IsOurs(query) || query.check.source != apm.name) continue;
    const auto ours = config::ParseApmConfig(query.apm->config.values, {});
    const auto parsed = demand::ParseQuery(query.check.query);
    if (!ours.ok() || !ours->harvester.has_server() || !parsed.ok()) continue;
    const bool overflows = parsed->subject == demand::Subject::kOverflow && parsed->home.max > 0;
    if (!overflows && parsed->subject != demand::Subject::kRoom) continue;
    const absl::Status read = apm.read_room(context.WithTimeout(kOperatorBudget), parsed->home);
    results.push_back(
        {"metrics.rights",
         "pool " + ToString(parsed->home) + ", for the apm block \"" + apm.name + "\"",
         read.ok()                          ? CheckOutcome::kPass
         : absl::IsFailedPrecondition(read) ? CheckOutcome::kWarn
                                            : CheckOutcome::kFail,
         read.ok() ? "its token may read the VMs, the hosts and their pods" : base::Message(read),
         ""});
  }
  return results;
}

// Checks whether the agent finds the plugin there, as far as this user may look.
CheckResult ResultOf(const PluginDirectory& plugin_dir) {
  namespace fs = std::filesystem;
  const auto result = [&](CheckOutcome outcome, const std::string& text, const std::string& cure) {
    return CheckResult{"files.plugin_dir", "plugin_dir (" + plugin_dir.where + ")", outcome, text,
                       cure};
  };
  const fs::path executable = fs::path(plugin_dir.path) / NOMAD_HARVESTER_PLUGIN_NAME;
  std::error_code error;
  const fs::file_status file = fs::status(executable, error);
  if (file.type() == fs::file_type::none) {
    return result(CheckOutcome::kUnknown,
                  "cannot look at " + executable.string() + ": " + error.message(),
                  "run it as the agent's user, where the agent runs");
  }
  constexpr char kPutThere[] =
      "put the plugin's executable there, where the agent runs, or correct plugin_dir";
  if (file.type() == fs::file_type::not_found) {
    return result(
        CheckOutcome::kWarn,
        (fs::exists(plugin_dir.path, error) ? "there is no file " + executable.string()
                                            : "there is no directory " + plugin_dir.path) +
            ", where the agent looks for the plugin",
        kPutThere);
  }
  if (file.type() != fs::file_type::regular) {
    return result(CheckOutcome::kWarn, executable.string() + " is not a file", kPutThere);
  }
  constexpr fs::perms kAnyone =
      fs::perms::owner_exec | fs::perms::group_exec | fs::perms::others_exec;
  if ((file.permissions() & kAnyone) == fs::perms::none) {
    return result(CheckOutcome::kWarn, executable.string() + " may be executed by nobody",
                  "chmod 755 " + executable.string());
  }
  std::ifstream stream(executable, std::ios::binary);
  std::string begin(4, '\0');
  if (stream &&
      !(stream.read(begin.data(), 4) && begin == "\x7f"
                                                 "ELF") &&
      !begin.starts_with("#!")) {
    return result(CheckOutcome::kWarn, executable.string() + " is not an executable of Linux",
                  kPutThere);
  }
  return result(CheckOutcome::kPass, "has the executable " NOMAD_HARVESTER_PLUGIN_NAME, "");
}

// Two policies of one Harvester's pool overwrite each other's count (rule L11).
std::vector<CheckResult> ResultsOfSharedPools(const Settings& settings) {
  std::vector<CheckResult> results;
  for (const SharedPool& pool : settings.files.SharedPools(settings.environment)) {
    results.push_back({"policy.pool", "policies of pool " + pool.key.ToString(),
                       CheckOutcome::kFail, pool.text,
                       "let one policy have it: set enabled = false in the others, or "
                       "another node_group_name"});
  }
  return results;
}

// What refuses a Scale of the pool now, or keeps the agent from calling it. What cannot be read,
// and a pause, have lines of their own.
std::vector<CheckResult> ResultsOfState(const CommandRun& run, const runtime::Context& context) {
  const auto seen = run.maintenance.Inspect(context, *run.settings.policy, /*defines_vms=*/false);
  if (!seen.ok() || !CheckNomad(seen->snapshot).ok()) return {};
  std::vector<CheckResult> results;
  const auto add = [&](const std::string& text, const std::string& cure) {
    results.push_back(
        {"pool.state", "pool " + KeyOf(run).ToString(), CheckOutcome::kWarn, text, cure});
  };
  const scaling::LeaseView& lease = seen->lease;
  const base::WallTime now = seen->snapshot.now();
  if (!seen->report.status.ready && !lease.record.paused.HoldsAt(now)) {
    add("it is not ready, so that the agent does not scale it: " + seen->report.reason,
        "nomad-harvester status shows its VMs, and what each waits for");
  }
  if (const absl::Status grows = CheckGrowth(seen->snapshot); !grows.ok()) {
    add("a growth would be refused: " + base::Message(grows), "");
  }
  for (const auto& [cause, entry] : lease.record.back_off) {
    if (!scaling::MustWait(cause, entry, now)) continue;
    add(BackOffText(cause, entry, now),
        "nomad-harvester status shows the last error; mend its cause");
  }
  const std::int64_t count = seen->report.status.count;
  const auto& limits = run.settings.files.limits;
  if (limits.has_value() && count > limits->max) {
    add("its count is " + std::to_string(count) + ", and max of " + limits->policy + " is " +
            std::to_string(limits->max) +
            ": as soon as a check asks for another count, the agent "
            "removes " +
            std::to_string(count - limits->max),
        "raise max, unless they are to go");
  }
  if (lease.live) {
    add(lease.holder + " holds its Lease, and is alive: no other process can scale it meanwhile",
        "wait until that has ended, unless it is the agent's plugin");
  }
  return results;
}

// The agent's working directory is not this one.
std::vector<CheckResult> ResultsOfRelativePaths(const Settings& settings) {
  std::vector<CheckResult> results;
  const auto look = [&](std::string_view key, const std::string& path, const std::string& where) {
    if (path.empty() || path.starts_with('/')) return;
    results.push_back({"files.relative", std::string(key) + " (" + where + ")", CheckOutcome::kWarn,
                       path + " is relative: the agent looks for it below its working directory",
                       "write the whole path, as the agent sees it"});
  };
  look("plugin_dir", settings.files.plugin_dir.path, settings.files.plugin_dir.where);
  for (const config::Option& option : config::OptionTable()) {
    const std::string key(option.key);
    const bool of_plugin = option.section == config::Section::kPlugin;
    const config::StringMap& block = of_plugin ? settings.plugin_block : settings.policy_block;
    const auto value = block.find(key);
    const auto origin = settings.origins.find(key);
    const bool is_path = option.type == config::OptionType::kPath;
    if (!is_path || value == block.end() || origin == settings.origins.end()) continue;
    look(key, value->second, origin->second);
  }
  return results;
}

// The work has room if a scale-in takes the nodes that the count leaves out: the idle ones.
std::vector<CheckResult> ResultsOfSelector(const Settings& settings) {
  const auto& queries = settings.files.queries;
  const policy::SelectorStrategy selector = settings.policy->selector;
  if (selector == policy::SelectorStrategy::kEmptyIgnoreSystem ||
      std::none_of(queries.begin(), queries.end(), &IsOurs)) {
    return {};
  }
  return {{"policy.selector", "node_selector_strategy", CheckOutcome::kWarn,
           std::string(policy::NameOf(selector)) +
               (selector == policy::SelectorStrategy::kEmpty
                    ? " never removes a node with a system job, which the count leaves out"
                    : " may drain a node with work while idle ones stay: the count is that of "
                      "the nodes with work"),
           "node_selector_strategy = \"empty_ignore_system\""}};
}

// Looks for names that only examples have in what the files and --set say. The templates in the
// policy are looked at where they are rendered.
std::vector<CheckResult> PlaceholdersOf(const Settings& settings) {
  std::vector<CheckResult> results;
  const auto look = [&](const FileMap& given) {
    for (const auto& [key, value] : given.values) {
      const std::string name = scaling::PlaceholderIn(value);
      if (name.empty() || key == "user_data" || key == "network_data") continue;
      results.push_back({"files.placeholder", WithOrigins(key, given.origins), CheckOutcome::kWarn,
                         name + " is a name that only examples have", "write your own there"});
    }
  };
  look({.values = settings.plugin_block, .origins = settings.origins});
  look({.values = settings.policy_block, .origins = settings.origins});
  for (const MetricQuery& query : settings.files.queries) {
    if (!query.apm.has_value()) continue;
    FileMap own = query.apm->config;  // what it inherits is looked at above
    std::erase_if(own.values, [](const auto& entry) { return entry.first.starts_with("nomad_"); });
    look(own);
  }
  return results;
}

std::vector<CheckResult> ResultsOf(const CommandRun& run) {
  const Settings& settings = run.settings;
  std::vector<CheckResult> results;
  if (!settings.files.files.empty()) {
    results.push_back({"files.read", "the agent's files", CheckOutcome::kPass,
                       "read " + absl::StrJoin(settings.files.files, ", "), ""});
  }
  for (const auto& [key, problem] : settings.missing_cas) {
    results.push_back({"files.ca", key, CheckOutcome::kFail, problem + "; checked without it",
                       "write the CA there, or correct the path, as the agent sees it"});
  }
  if (const PluginDirectory& dir = settings.files.plugin_dir; !dir.path.empty()) {
    results.push_back(ResultOf(dir));
  } else if (!dir.where.empty()) {
    results.push_back(
        {"files.plugin_dir", "the agent's files", CheckOutcome::kWarn,
         dir.where + " has no plugin_dir: the agent looks for the plugin in ./plugins",
         "set plugin_dir, unless the agent has the option -plugin-dir"});
  }
  if (const std::string& doubt = settings.files.policy_dir_doubt; !doubt.empty()) {
    results.push_back({"files.policy_dir", "the agent's files", CheckOutcome::kWarn, doubt,
                       "set dir in the block policy, unless the agent has the option -policy-dir"});
  }
  const auto add = [&](std::vector<CheckResult> more) {
    std::move(more.begin(), more.end(), std::back_inserter(results));
  };
  add(ResultsOfRelativePaths(settings));
  const runtime::Context limited = run.context.WithTimeout(kOperatorBudget);
  const std::vector<CheckResult> of_systems = run.maintenance.Check(limited, *settings.policy);
  add(of_systems);
  // What a system does not answer would be waited for once more.
  const bool can_be_read = std::none_of(
      of_systems.begin(), of_systems.end(),
      [](const CheckResult& result) { return result.outcome == CheckOutcome::kSkipped; });
  if (can_be_read) add(ResultsOfState(run, limited));
  for (const std::string& unknown : settings.files.unknown) {
    results.push_back({"files.agent", "the agent's files", CheckOutcome::kFail, unknown,
                       "correct it, unless the agent is newer and knows it"});
  }
  for (const std::string& refusal : settings.files.refusals) {
    results.push_back({"policy.agent", "the policy's file", CheckOutcome::kFail, refusal,
                       "correct it: the agent does not scale by this policy"});
  }
  if (!settings.files.policy_name.empty() && !settings.files.limits.has_value()) {
    results.push_back(
        {"policy.enabled",
         "policy \"" + settings.files.policy_name + "\" (" + settings.files.policy_where + ")",
         CheckOutcome::kWarn, "is not enabled: the agent does not scale its pool",
         "enabled = true, and restart the agent"});
  }
  if (settings.files.limits.has_value() && settings.files.limits->max == 0) {
    results.push_back({"policy.max", settings.files.limits->policy, CheckOutcome::kWarn,
                       "max = 0: the agent removes every VM of its pool, and makes none",
                       "set max to the most VMs that the pool may have"});
  }
  for (const UnreadPolicy& other : run.unread) {
    // The text begins with the place.
    results.push_back(
        {"files.policies", "also in the files" + (other.label.empty() ? "" : ": " + other.Name()),
         CheckOutcome::kWarn, other.Text(), "correct it: the agent does not scale by it"});
  }
  add(ResultsOfSharedPools(settings));
  add(PlaceholdersOf(settings));
  add(ResultsOfSelector(settings));
  const nodepool::PoolIdentity nodes = scaling::IdentityOf(*settings.policy);
  for (const MetricQuery& query : settings.files.queries) {
    results.push_back(ResultOf(query, nodes, settings.files.plugin_dir));
    add(ResultsOfSameNodes(query, settings.files.other_queries));
  }
  for (const CheckedApm& apm : run.apms) {
    results.push_back(ResultOfApm(apm, run.context));
    add(ResultsOfRoom(apm, settings.files.queries, run.context));
  }
  return results;
}

// Ignores the texts, which contain times.
std::string StateOf(const std::vector<CheckResult>& results) {
  std::string state;
  for (const CheckResult& result : results) {
    state +=
        result.id + " " + result.subject + " " + std::string(NamesOf(result.outcome).word) + "\n";
  }
  return state;
}

}  // namespace

int CheckPreconditions(const CommandRun& run, const CheckArguments& arguments) {
  const auto look = [&] {
    const std::vector<CheckResult> results = ResultsOf(run);
    return Look{
        .exit_code = Passes(results) ? kExitOk : kExitFailure,
        .text = arguments.output == kForPeople
                    ? Paint(Fold(TextOf(results), run.terminal.width, kWordWidth),
                            {{"FAIL", Colour::kRed}, {"warn", Colour::kYellow}}, run.terminal)
                    : PrintableDocument(arguments.output, DocumentOf(results)),
        .state = StateOf(results)};
  };
  return ShowLooks(run, arguments.watch, "check of pool " + KeyOf(run).ToString(), look);
}

void AddCheckCommand(CLI::App& app, const Invocation& invocation) {
  const auto arguments = std::make_shared<CheckArguments>();
  CLI::App* const command = AddMaintenanceCommand(
      app, invocation,
      {.name = "check",
       .description =
           "Check every precondition of a pool before the first VM: both systems, tokens, rights, "
           "what VMs are made of, and a dry run of one. Writes nothing.",
       .exit_codes = "Exit: 0 nothing failed (warn and unknown are no failures), 1 a failure, "
                     "2 usage, 130 interrupted.",
       .use = PolicyUse::kChecked,
       .task = [arguments](const CommandRun& run) { return CheckPreconditions(run, *arguments); }});
  AddOutputOption(*command, arguments->output);
  AddWatchOptions(*command, arguments->watch);
}

}  // namespace nomad_harvester::cli
