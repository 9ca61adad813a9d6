// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <csignal>
#include <iostream>
#include <list>
#include <map>
#include <memory>
#include <poll.h>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/base/text.h"
#include "nomad_harvester/config/option_table.h"
#include "nomad_harvester/demand/reader.h"
#include "nomad_harvester/log/sinks.h"
#include "nomad_harvester/plugin/plugin_process.h"
#include "nomad_harvester/scaling/check.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "command.h"
#include "error_writer.h"
#include "nlohmann/json.hpp"
#include "runtime_parts.h"
#include "system_waits.h"
#include "text.h"

namespace nomad_harvester::cli {
namespace {

// Ctrl-C, SIGTERM and a closed terminal end a command gracefully: waiting requests end, and Leases
// are released. The second Ctrl-C or SIGTERM ends the process; SIGHUP does not count, because both
// the kernel and the shell send it when a terminal closes. Blocks the signals in the calling thread
// and in threads that it starts afterwards: create it before any other thread. They stay blocked.
class Interrupt {
 public:
  explicit Interrupt(const ErrorWriter& errors) : errors_(errors) {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGINT);
    sigaddset(&signals_, SIGTERM);
    if (!plugin::IsIgnored(SIGHUP)) sigaddset(&signals_, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  }
  ~Interrupt() {
    if (!watcher_.joinable()) return;
    ended_ = true;
    pthread_kill(watcher_.native_handle(), SIGINT);  // ends its wait
    watcher_.join();
  }
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  // From now on, the first signal cancels `work`. Call once.
  void Cancels(const std::shared_ptr<runtime::CancelSource>& work) {
    watcher_ = std::thread([this, work] {
      const int first = Wait();
      if (ended_) return;
      errors_.Interrupt(kExitSignal + first);
      work->Cancel(runtime::CancelReason::kShutdown);
      int second = Wait();
      while (second == SIGHUP) second = Wait();
      if (!ended_) _exit(kExitSignal + second);
    });
  }

 private:
  int Wait() const {
    int signal = 0;
    sigwait(&signals_, &signal);
    return signal;
  }

  const ErrorWriter errors_;
  sigset_t signals_{};
  std::atomic<bool> ended_ = false;
  std::thread watcher_;
};

// State shared by the commands' runs, and their connections. Create it before any thread.
class Connections {
 public:
  Connections(const ErrorWriter& errors, const config::StringMap& environment)
      : errors_(errors),
        environment_(environment),
        interrupt_(errors),
        parts_(log::MakePlainSink(), log::Level::kWarn, environment),
        work_(
            std::make_shared<runtime::CancelSource>(runtime::Context::Background(parts_.clock()))),
        context_(work_->context()),
        waits_(parts_.clock(), &HasPrinted, std::cerr) {}

  // Connects to both systems of the settings. Warns once about their oddities.
  absl::Status Connect(Settings given, PolicyUse use) {
    const Settings& settings = settings_.emplace_back(std::move(given));
    const auto config = std::make_shared<const config::PluginConfig>(settings.plugin);
    auto transports = scaling::MakeCurlTransports(*config);
    NH_RETURN_IF_ERROR(transports.status());
    const scaling::MaintenanceOptions options = parts_.MakeMaintenance(*config);
    Warn(options.logger, config->warnings);
    // `check` has its own line for each, with the cure.
    if (use != PolicyUse::kChecked) Warn(options.logger, config->missing_token_files);
    Warn(options.logger, transports->warnings);
    if (settings.policy.has_value()) Warn(options.logger, settings.policy->warnings);
    maintenances_.emplace_back(
        options, scaling::MakeClients(config, waits_.Limit(*transports, *config), parts_.random(),
                                      options.logger));
    return absl::OkStatus();
  }

  absl::Status Connect(const std::vector<std::string>& pairs, const FileSettings& files,
                       PolicyUse use) {
    NH_ASSIGN_OR_RETURN(Settings settings, ReadSettings(pairs, files, use, environment_));
    return Connect(std::move(settings), use);
  }

  // Likewise as an apm block.
  absl::StatusOr<DemandReaders> ConnectAsApm(const config::PluginConfig& config) {
    std::vector<std::string> warnings;
    NH_ASSIGN_OR_RETURN(DemandReaders readers, parts_.MakeReaders(config, waits_, &warnings));
    Warn(parts_.logger(), warnings);
    return readers;
  }

  const runtime::Context& context() const { return context_; }

  // Returns the runs in the order of Connect, under a context that a signal cancels from now on.
  // Call once.
  std::vector<CommandRun> Runs() {
    interrupt_.Cancels(work_);
    std::vector<CommandRun> runs;
    auto maintenance = maintenances_.begin();
    for (const Settings& settings : settings_) {
      runs.push_back({.maintenance = *maintenance++,
                      .context = context_,
                      .settings = settings,
                      .out = std::cout,
                      .err = std::cerr,
                      .errors = errors_,
                      .terminal = TerminalOf(STDOUT_FILENO, environment_),
                      .prompter = AskOnTerminal(),
                      .has_reader = &HasReader});
    }
    return runs;
  }

 private:
  void Warn(const log::Logger& logger, const std::vector<std::string>& warnings) {
    for (const std::string& warning : warnings) {
      if (warned_.insert(warning).second) logger.Warn(warning);
    }
  }

  const ErrorWriter& errors_;
  const config::StringMap& environment_;
  Interrupt interrupt_;
  RuntimeParts parts_;
  const std::shared_ptr<runtime::CancelSource> work_;
  const runtime::Context context_;
  SystemWaits waits_;
  std::list<Settings> settings_;
  std::list<scaling::Maintenance> maintenances_;
  std::set<std::string> warned_;
};

UnreadPolicy UnreadOf(const FileSettings& files, const absl::Status& problem) {
  return {.label = files.policy_name,
          .where = files.policy_where,
          .ns = NamespaceOf(files.policy),
          .problem = base::Message(problem)};
}

// The apm blocks of this driver that the policies' checks name, by name.
using ApmBlocks = std::map<std::string, config::StringMap>;
ApmBlocks ApmBlocksOf(const std::vector<FileSettings>& files) {
  ApmBlocks blocks;
  for (const FileSettings& each : files) {
    for (const MetricQuery& query : each.queries) {
      if (IsOurs(query)) blocks.emplace(query.check.source, query.apm->config.values);
    }
  }
  return blocks;
}

bool IsOfConnection(std::string_view key) {
  return key.starts_with("nomad_") || key.starts_with("harvester_") ||
         key.starts_with("auth_token");
}

// The keys of the connections in which the blocks differ, although `pairs` overrides some.
std::set<std::string> KeysThatDiffer(const ApmBlocks& blocks,
                                     const std::vector<std::string>& pairs) {
  std::set<std::string> keys;
  for (const auto& [name, block] : blocks) {
    for (const auto& [other_name, other] : blocks) {
      for (const auto& [key, value] : block) {
        if (IsOfConnection(key) && base::ValueOf(other, key) != value) keys.insert(key);
      }
    }
  }
  for (const std::string& pair : pairs) keys.erase(pair.substr(0, pair.find('=')));
  return keys;
}

// The block that the checks of the policies name, or else the one that the files have: one reading
// answers all queries. Says which, if the files have others that differ.
absl::StatusOr<ApmBlocks> ChooseApm(const std::vector<FileSettings>& files,
                                    const std::vector<std::string>& pairs, bool has_policy_name,
                                    const ErrorWriter& errors) {
  const ApmBlocks all = files.empty() ? ApmBlocks() : files.front().apms;
  ApmBlocks chosen = ApmBlocksOf(files);
  const bool are_named = !chosen.empty();
  if (!are_named) chosen = all;
  const std::set<std::string> keys = KeysThatDiffer(chosen, pairs);
  if (!keys.empty()) {
    const auto name_of = [](std::string* text, const auto& block) { *text += block.first; };
    return base::InvalidArgument(
        std::string(are_named ? "the policies ask" : "no check names one of") + " the apm blocks " +
        absl::StrJoin(chosen, ", ", name_of) + ", which differ in " + absl::StrJoin(keys, ", ") +
        ": give " +
        (has_policy_name ? "" : "--policy-name of a policy that asks one of them, or ") +
        "these keys by --set");
  }
  if (!KeysThatDiffer(all, pairs).empty()) {
    errors.Note("using the apm block " + chosen.begin()->first);
  }
  return chosen;
}

bool IsOfNomad(std::string_view key) {
  return key.starts_with("nomad_") || key.starts_with("request_timeout");
}

// What the apm block or else the agent's target block, and the options, say about Nomad.
absl::StatusOr<config::PluginConfig> ReadNomadConfig(const std::vector<std::string>& pairs,
                                                     const std::vector<FileSettings>& files,
                                                     const ApmBlocks& apms,
                                                     const config::StringMap& environment) {
  FileSettings settings;
  if (!files.empty()) settings = files.front();
  if (!apms.empty()) {
    settings.plugin = apms.begin()->second;
  } else {
    std::erase_if(settings.plugin, [](const auto& entry) { return !IsOfNomad(entry.first); });
  }
  NH_ASSIGN_OR_RETURN(const PluginSettings plugin,
                      ReadPluginSettings(pairs, settings, environment));
  NH_ASSIGN_OR_RETURN(config::PluginConfig config,
                      config::ParseApmConfig(plugin.block, plugin.environment));
  for (const FileSettings& each : files) {
    config.warnings.insert(config.warnings.end(), each.warnings.begin(), each.warnings.end());
  }
  return config;
}

// The pairs for it of a command that takes those of other blocks, too.
std::vector<std::string> OfNomad(std::vector<std::string> pairs) {
  std::erase_if(pairs, [](const std::string& pair) { return !IsOfNomad(pair); });
  return pairs;
}

// Without those that are of Harvester alone.
std::vector<std::string> WithoutHarvester(std::vector<std::string> pairs) {
  std::erase_if(pairs, [](const std::string& pair) {
    const std::string key = pair.substr(0, pair.find('='));
    return !IsOfNomad(key) && config::FindOption(config::Section::kPlugin, key) != nullptr;
  });
  return pairs;
}

// The other policies and files that the agent does not scale by, beside that of `chosen`. What is
// given for the chosen pool does not count for them.
std::vector<UnreadPolicy> UnreadBeside(const FileSettings& chosen, OperatorFiles files,
                                       std::vector<std::string> pairs,
                                       const config::StringMap& environment) {
  if (chosen.policy_name.empty()) return {};
  files.policy_name.clear();
  auto all = ReadFilesOfAll(std::move(files));
  if (!all.ok()) return {};
  std::erase_if(pairs, [](const std::string& pair) {
    return config::FindOption(config::Section::kPlugin, pair.substr(0, pair.find('='))) == nullptr;
  });
  for (const FileSettings& other : all->policies) {
    if (other.policy_where == chosen.policy_where) continue;
    const auto settings = ReadSettings(pairs, other, PolicyUse::kChecked, environment);
    if (!settings.ok()) all->unread.push_back(UnreadOf(other, settings.status()));
  }
  return std::move(all->unread);
}

// "nomad/web", and no path.
bool IsNamespaceAndName(std::string_view word) {
  const std::size_t slash = word.find('/');
  return slash != 0 && slash + 1 < word.size() && word.front() != '.' &&
         word.find('/', slash + 1) == std::string_view::npos;
}

// A pool that is named in full can be paused without its policy, which may be what cannot be read.
absl::StatusOr<FileSettings> ReadFilesFor(PolicyUse use, OperatorFiles named,
                                          const ErrorWriter& errors,
                                          std::vector<std::string>* pairs) {
  auto files = ReadOperatorFiles(named);
  if (files.ok() || use != PolicyUse::kPool) return files;
  const std::string pool = std::exchange(named.policy_name, "");
  if (const auto all = ReadFilesOfAll(named); all.ok() && all->unread.empty()) return files;
  named.policy.clear();
  named.needs_policy = false;
  auto without = ReadOperatorFiles(named);
  if (!without.ok()) return files;
  const std::string problem = base::Message(files.status());
  const std::size_t slash = pool.find('/');
  if (slash == std::string::npos || !IsNamespaceAndName(pool)) {
    return base::InvalidArgument(problem +
                                 "\nno policy is needed for a pool that is named NAMESPACE/NAME");
  }
  errors.Note("without a policy, because " + base::OneLine(problem));
  pairs->push_back("namespace=" + pool.substr(0, slash));
  pairs->push_back("node_group_name=" + pool.substr(slash + 1));
  return without;
}

// What nobody means by a pool: a count, a setting or a file is told what it is.
std::string ProblemOfPool(const std::string& word) {
  const bool is_other = base::ParseInt(word).ok() || word.ends_with(".hcl") ||
                        word.ends_with(".json") || word.find('=') != std::string::npos ||
                        (word.find('/') != std::string::npos && !IsNamespaceAndName(word));
  return is_other ? "is no name of a pool" : "";
}

// The error of a command without files, and without the keys of a pool; empty: it has one of them.
// A word of it was meant to name the pool.
std::string WhatNamesNoPool(const MaintenanceCommand& command, const SettingArguments& arguments) {
  const OperatorFiles& files = arguments.files;
  if (files.AreGiven() || NamesPool(PairsOf(arguments))) return "";
  std::string pool = files.policy_name;
  if (pool.empty() && command.words != nullptr && !command.words->empty()) {
    pool = command.words->front();
  }
  const bool needs_none = command.use == PolicyUse::kOptional && pool.empty();
  return needs_none ? "" : WithoutFiles(files.why_none, pool, PoolBySet(pool));
}

// Ctrl-C is handled by a waiting thread and interrupts no read, so reading starts only when there
// is input.
std::optional<std::string> ReadLine(const runtime::Context& context) {
  constexpr int kPollMilliseconds = 100;
  pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  while (!context.Done() && poll(&input, 1, kPollMilliseconds) == 0) {
  }
  std::string line;
  if (context.Done() || !std::getline(std::cin, line)) return std::nullopt;
  return line;
}

}  // namespace

std::string UnreadText(const std::vector<UnreadPolicy>& unread) {
  std::string text;
  for (const UnreadPolicy& each : unread) {
    text +=
        "Not read:   " + Printable((each.label.empty() ? "" : each.Name() + ": ") + each.Text()) +
        "\n";
  }
  return text;
}

nlohmann::ordered_json UnreadDocument(const UnreadPolicy& unread) {
  return {
      {"policy", unread.label}, {"place", unread.where}, {"error", base::OneLine(unread.problem)}};
}

void NoteFound(const FileSettings& files, const ErrorWriter& errors) {
  if (!files.found.empty()) errors.Note("using the files of " + files.found);
}

std::string NomadText(const config::NomadSettings& settings) {
  return "Nomad at nomad_address " + settings.address + ", with " +
         scaling::CredentialText(settings);
}

std::string CureOfDemand(const absl::Status& failed, const config::NomadSettings& settings) {
  return scaling::CureOfNomad(failed, settings,
                              "grant " + std::string(demand::kTokenNeeds) + " to the token");
}

ErrorWriter Invocation::Errors(const std::string& command) const {
  return ErrorWriter(command, error_style, std::cerr);
}

CLI::Option* AddSetOption(CLI::App& command, std::vector<std::string>& settings,
                          const std::string& description) {
  return command.add_option("--set", settings, description)
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
}

CLI::Option* AddAgentConfigOption(CLI::App& command, OperatorFiles& files) {
  return command
      .add_option("--agent-config", files.agent_config,
                  "The agent's configuration: the target block with driver harvester, and block "
                  "nomad. Of a directory, its files *.hcl and *.json, as the agent reads them. May "
                  "be given several times, as the agent's -config. Default: "
                  "$NOMAD_HARVESTER_AGENT_CONFIG, else /etc/nomad-autoscaler")
      ->type_name("FILE|DIR")
      ->allow_extra_args(false);
}

void AddFileOptions(CLI::App& command, OperatorFiles& files) {
  AddAgentConfigOption(command, files);
  command
      .add_option("--policy", files.policy,
                  "The scaling policy in the agent's policy directory, or that directory; default: "
                  "policy.dir of --agent-config, for a command that needs a policy")
      ->type_name("FILE|DIR");
  command
      .add_option("--policy-name", files.policy_name,
                  "The policy, if there are several: the label of its scaling block, or its pool's "
                  "name or NAMESPACE/NAME")
      ->type_name("NAME");
}

void AddPoolArgument(CLI::App& command, OperatorFiles& files) {
  command
      .add_option("POOL", files.policy_name,
                  "The pool: the label of its policy, its name or NAMESPACE/NAME")
      ->check(&ProblemOfPool)
      ->excludes("--policy-name");
  command.validate_positionals();
}

std::vector<std::string> PairsOf(const SettingArguments& arguments) {
  std::vector<std::string> pairs = arguments.pairs;
  if (!arguments.ns.empty()) pairs.push_back("namespace=" + arguments.ns);
  if (!arguments.kubeconfig.empty()) {
    pairs.push_back("harvester_kubeconfig=" + arguments.kubeconfig);
  }
  return pairs;
}

CLI::Option* AddOutputOption(CLI::App& command, std::string& output,
                             const std::vector<std::string>& names) {
  return command
      .add_option(
          "-o,--output", output,
          "json and yaml are for programs" +
              std::string(names.size() > std::size(kOutputs) ? "; wide has more columns" : ""))
      ->check(CLI::IsMember(names))
      ->capture_default_str();
}

void AddWatchOptions(CLI::App& command, WatchArguments& watch) {
  command.add_flag("-w,--watch", watch.watch,
                   "Repeat until Ctrl-C: on a terminal's alternate screen, else whenever something "
                   "changes");
  const auto read = [&watch](const std::string& text) {
    const auto parsed = base::ParseGoDuration(text);
    if (!parsed.ok() || *parsed < std::chrono::seconds(1)) {
      return "must be a duration of at least 1s, such as 5s or 1m" + Got(text);
    }
    watch.interval = *parsed;
    return std::string();
  };
  command
      .add_option_function<std::string>(
          "--interval", [](const std::string& /*text*/) {},
          "The time between two looks, at least 1s")
      ->check(read)
      ->type_name("DURATION")
      ->needs("--watch")
      ->default_str(base::FormatGoDuration(watch.interval));
}

int RunConnected(const ErrorWriter& errors, const SettingArguments& arguments, PolicyUse use,
                 const config::StringMap& environment, const Task& task) {
  Connections connections(errors, environment);
  std::vector<std::string> pairs = PairsOf(arguments);
  OperatorFiles named = arguments.files;
  // Of a namespace that nobody named, not every pool is meant.
  const bool whole_namespace = use == PolicyUse::kOptional && NamesNamespace(pairs);
  named.needs_policy = !NamesPool(pairs) && !whole_namespace;
  const auto files = ReadFilesFor(use, named, errors, &pairs);
  if (!files.ok()) return errors.Refuse(files.status(), kExitUsage);
  NoteFound(*files, errors);
  const absl::Status connected = connections.Connect(pairs, *files, use);
  if (!connected.ok()) return errors.Refuse(connected, kExitUsage);
  CommandRun run = connections.Runs().front();
  if (use != PolicyUse::kChecked) return errors.ExitCode(task(run));
  run.unread = UnreadBeside(*files, named, pairs, environment);
  for (const auto& [name, values] : ApmBlocksOf({*files})) {
    const auto apm = ReadNomadConfig(OfNomad(pairs), {*files}, {{name, values}}, environment);
    if (!apm.ok()) continue;  // the line of the check says so
    run.apms.push_back(
        {.name = name,
         .nomad = apm->nomad,
         .read = [&connections, config = *apm](const runtime::Context& context) -> absl::Status {
           NH_ASSIGN_OR_RETURN(const DemandReaders readers, connections.ConnectAsApm(config));
           return base::GetStatus(readers.nomad->Read(context));
         },
         .read_room = [&connections, config = *apm](const runtime::Context& context,
                                                    const demand::HomePool& pool) -> absl::Status {
           NH_ASSIGN_OR_RETURN(const DemandReaders readers, connections.ConnectAsApm(config));
           return base::GetStatus(readers.harvester->Read(context, pool));
         }});
  }
  return errors.ExitCode(task(run));
}

int RunConnectedToAll(const ErrorWriter& errors, const SettingArguments& arguments,
                      const config::StringMap& environment, const TaskOfAll& task) {
  Connections connections(errors, environment);
  SettingArguments shared = arguments;
  shared.ns.clear();  // it only selects the pools
  const std::vector<std::string> pairs = PairsOf(shared);
  if (!arguments.files.policy_name.empty()) {
    return errors.Refuse("--all shows the pools of all policies; leave out --policy-name",
                         kExitUsage);
  }
  auto files = ReadFilesOfAll(arguments.files);
  if (!files.ok()) return errors.Refuse(files.status(), kExitUsage);
  std::vector<UnreadPolicy>& unread = files->unread;
  if (!files->policies.empty()) NoteFound(files->policies.front(), errors);
  for (const FileSettings& of_policy : files->policies) {
    auto settings = ReadSettings(pairs, of_policy, PolicyUse::kRequired, environment);
    absl::Status problem = settings.status();
    if (problem.ok()) {
      if (!arguments.ns.empty() && settings->ns != arguments.ns) continue;
      problem = connections.Connect(*std::move(settings), PolicyUse::kRequired);
    }
    if (!problem.ok()) unread.push_back(UnreadOf(of_policy, problem));
  }
  std::erase_if(unread, [&](const UnreadPolicy& each) {
    return !arguments.ns.empty() && !each.ns.empty() && each.ns != arguments.ns;
  });
  const std::vector<CommandRun> runs = connections.Runs();
  if (runs.empty() && !unread.empty()) {
    std::string problems;
    for (const UnreadPolicy& each : unread) {
      problems += (problems.empty() ? "" : "\n") + each.where + ": " + each.problem;
    }
    return errors.Refuse(problems, kExitUsage);
  }
  if (runs.empty()) {
    return errors.Refuse("no enabled policy of the files has a pool of this plugin" +
                             (arguments.ns.empty() ? "" : " in namespace " + arguments.ns),
                         kExitUsage);
  }
  return errors.ExitCode(task(runs, unread));
}

int RunDemand(const ErrorWriter& errors, const SettingArguments& arguments,
              const DemandReads& reads, const config::StringMap& environment,
              const DemandTask& task) {
  Connections connections(errors, environment);
  std::vector<FileSettings> files;
  std::vector<UnreadPolicy> unread;
  OperatorFiles given = arguments.files;
  if (reads.policies && !given.AreGiven()) {
    return errors.Refuse(WithoutFiles(given.why_none, given.policy_name,
                                      reads.harvester ? "a policy with --policy" : kQueryInstead),
                         kExitUsage);
  }
  if (reads.policies && given.policy_name.empty()) {
    auto all = ReadFilesOfAll(given);
    if (!all.ok()) return errors.Refuse(all.status(), kExitUsage);
    files = std::move(all->policies);
    unread = std::move(all->unread);
  }
  if (given.AreGiven() && files.empty()) {
    given.needs_policy = reads.policies;
    auto only = ReadOperatorFiles(given);
    if (!only.ok()) return errors.Refuse(only.status(), kExitUsage);
    files = {*std::move(only)};
  }
  if (!files.empty()) NoteFound(files.front(), errors);
  const std::vector<std::string> pairs = PairsOf(arguments);
  const std::vector<std::string> of_apm = reads.harvester ? WithoutHarvester(pairs) : pairs;
  const auto apm = ChooseApm(files, of_apm, !given.policy_name.empty(), errors);
  if (!apm.ok()) return errors.Refuse(apm.status(), kExitUsage);
  const auto config = ReadNomadConfig(of_apm, files, *apm, environment);
  if (!config.ok()) return errors.Refuse(config.status(), kExitUsage);
  const auto readers = connections.ConnectAsApm(*config);
  if (!readers.ok()) return errors.Refuse(readers.status(), kExitUsage);
  std::vector<DemandPool> pools;
  for (FileSettings& each : files) {
    DemandPool pool{.files = std::move(each)};
    if (reads.harvester) {
      pool.problem = base::Message(connections.Connect(pairs, pool.files, PolicyUse::kRequired));
    }
    pools.push_back(std::move(pool));
  }
  std::vector<CommandRun> runs = connections.Runs();
  auto next = runs.begin();
  for (DemandPool& pool : pools) {
    if (reads.harvester && pool.problem.empty()) pool.run.emplace(*next++);
  }
  return errors.ExitCode(task({.reader = *readers->nomad,
                               .harvester = readers->harvester.get(),
                               .nomad = config->nomad,
                               .context = connections.context(),
                               .pools = std::move(pools),
                               .unread = std::move(unread),
                               .out = std::cout,
                               .errors = errors,
                               .terminal = TerminalOf(STDOUT_FILENO, environment)}));
}

CLI::App* AddMaintenanceCommand(CLI::App& app, const Invocation& invocation,
                                const MaintenanceCommand& command) {
  CLI::App* added = app.add_subcommand(command.name, command.description);
  const auto arguments = std::make_shared<SettingArguments>();
  if (command.add_arguments != nullptr) command.add_arguments(*added);
  AddFileOptions(*added, arguments->files);
  if (command.words == nullptr) AddPoolArgument(*added, arguments->files);
  AddSetOption(*added, arguments->pairs,
               "Set a key of the plugin's block or of the policy's target block; repeatable, the "
               "last one of a key counts; overrides the environment (HARVESTER_URL, NOMAD_ADDR, "
               "...) and the files");
  added->add_option("-n,--namespace", arguments->ns, "Short for --set namespace=NAMESPACE")
      ->type_name("NAMESPACE");
  added
      ->add_option("--kubeconfig", arguments->kubeconfig,
                   "Short for --set harvester_kubeconfig=FILE: connects to Harvester with it, "
                   "whatever URL, CA and token the files have")
      ->type_name("FILE");
  added->footer(command.exit_codes);
  added->callback([command, arguments, invocation] {
    const ErrorWriter errors = invocation.Errors(command.name);
    SettingArguments found = *arguments;
    found.files = FindAgentFiles(arguments->files, invocation.environment);
    if (command.words != nullptr) TakePolicyName(&found.files, command.words);
    const bool is_for_all = command.is_for_all != nullptr && command.is_for_all();
    if (const std::string text = WhatNamesNoPool(command, found); !is_for_all && !text.empty()) {
      invocation.exit_code = errors.Refuse(text, kExitUsage);
      return;
    }
    invocation.exit_code = command.check == nullptr ? kExitOk : command.check(found.files);
    if (invocation.exit_code != kExitOk) return;
    if (is_for_all) {
      invocation.exit_code =
          RunConnectedToAll(errors, found, invocation.environment, command.task_of_all);
      return;
    }
    invocation.exit_code =
        RunConnected(errors, found, command.use, invocation.environment, command.task);
  });
  return added;
}

std::string PoolsText(const std::set<scaling::PoolKey>& pools) {
  const auto name_of = [](std::string* text, const scaling::PoolKey& key) { *text += key.pool; };
  return pools.empty() ? "the namespace has no pool"
                       : "pools of the namespace: " + absl::StrJoin(pools, ", ", name_of);
}

scaling::PoolKey KeyOf(const CommandRun& run) {
  return {.ns = run.settings.policy->ns, .pool = run.settings.policy->pool};
}

absl::StatusOr<scaling::Inspection> InspectPool(const CommandRun& run) {
  const Settings& settings = run.settings;
  return run.maintenance.Inspect(run.context.WithTimeout(kOperatorBudget), *settings.policy,
                                 settings.defines_vms, settings.pools_of_files);
}

Prompter AskOnTerminal() {
  return {.interactive = isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1,
          .read_line = ReadLine};
}

int DoForOutput(
    const CommandRun& run, const std::string& output,
    const std::function<int(const CommandRun& run, nlohmann::ordered_json* document)>& act) {
  nlohmann::ordered_json document;
  if (output == kForPeople) return act(run, &document);
  std::ostringstream dropped;
  const int exit_code = act({.maintenance = run.maintenance,
                             .context = run.context,
                             .settings = run.settings,
                             .out = dropped,
                             .err = run.err,
                             .errors = run.errors,
                             .has_reader = run.has_reader},
                            &document);
  if (!document.is_null()) run.out << PrintableDocument(output, document);
  return exit_code;
}

int Confirm(const CommandRun& run, bool yes, const std::string& act) {
  if (yes) return kExitOk;
  if (!run.prompter.interactive) {
    return run.errors.Refuse("it would " + act +
                                 (run.prompter.read_line == nullptr
                                      ? ", and nobody is asked with --output: give --yes"
                                      : ", and there is no terminal to ask on: give --yes"),
                             kExitUsage);
  }
  std::string question = Printable(act);
  question.front() = absl::ascii_toupper(static_cast<unsigned char>(question.front()));
  run.out << "\n" << question << "? [y/N] " << std::flush;
  const std::string answer = run.prompter.read_line(run.context).value_or("");
  if (answer == "y" || answer == "Y" || answer == "yes") return kExitOk;
  if (run.context.Done()) run.out << "\n";
  return run.errors.Refuse("nothing was done", kExitFailure);
}

}  // namespace nomad_harvester::cli
