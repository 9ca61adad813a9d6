// SPDX-License-Identifier: Apache-2.0
// The subcommands of the executable, and code shared by those that connect to the real systems.
// Private to module cli.
#ifndef NOMAD_HARVESTER_CLI_COMMAND_H_
#define NOMAD_HARVESTER_CLI_COMMAND_H_

#include <cstdint>
#include <functional>
#include <iterator>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "nomad_harvester/demand/reader.h"
#include "nomad_harvester/demand/room_reader.h"
#include "nomad_harvester/harvester/metadata.h"
#include "nomad_harvester/runtime/context.h"
#include "nomad_harvester/scaling/maintenance.h"

#include "absl/status/status.h"
#include "error_writer.h"
#include "nlohmann/json_fwd.hpp"
#include "operator_files.h"
#include "settings.h"
#include "terminal.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace nomad_harvester::cli {

struct CommandRun;

struct Prompter {
  bool interactive = false;  // standard input and output are terminals
  // Reads a line without its end; nullopt at the end of the input, and once the context has ended.
  std::function<std::optional<std::string>(const runtime::Context& context)> read_line;
};

// Uses this process' standard input and output.
Prompter AskOnTerminal();

// kExitOk: continue, as with --yes. kExitFailure: the answer was not yes. kExitUsage: nobody can be
// asked. `act`: used in the question and in errors, for example "remove 2 VMs".
int Confirm(const CommandRun& run, bool yes, const std::string& act);

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailure = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitChanges = 2;  // plan --exit-code: something would change
inline constexpr int kExitNotReady = 3;
inline constexpr int kExitTrouble = 4;   // ready, and something to look at
inline constexpr int kExitSignal = 128;  // plus the number of the signal

// Output formats: for people, or for programs. A command may have more.
inline constexpr char kForPeople[] = "table";
inline constexpr const char* kOutputs[] = {kForPeople, "json", "yaml"};

// An operator waits for the output; the limit includes retries.
inline constexpr base::Duration kOperatorBudget = std::chrono::seconds(30);

// The environment of a command, its error style, and the place for its exit code. Copies share
// everything.
//
// A command prints its result to std::cout, which Main checks at the end: a failed write is an
// error of its own, and a command that runs until it is stopped should end once std::cout has
// failed. Every error goes through Errors(…).Refuse(…), which writes JSON with --output json.
struct Invocation {
  const config::StringMap& environment;
  int& exit_code;
  ErrorStyle error_style = {};

  // Returns the writer for errors of the command with this name, on standard error.
  ErrorWriter Errors(const std::string& command) const;
};

// Each adds the subcommand with its name, which runs when it is parsed. `invocation` must outlive
// `app`.
void AddAdoptCommand(CLI::App& app, const Invocation& invocation);
void AddCheckCommand(CLI::App& app, const Invocation& invocation);
void AddDemandCommand(CLI::App& app, const Invocation& invocation);
void AddDevCommand(CLI::App& app, const Invocation& invocation);
void AddEvacuateCommand(CLI::App& app, const Invocation& invocation);
void AddGcCommand(CLI::App& app, const Invocation& invocation);
void AddInitCommand(CLI::App& app, const Invocation& invocation);
void AddPauseCommand(CLI::App& app, const Invocation& invocation);
void AddPlanCommand(CLI::App& app, const Invocation& invocation);
void AddRenderCommand(CLI::App& app, const Invocation& invocation);
void AddReplaceCommand(CLI::App& app, const Invocation& invocation);
void AddResumeCommand(CLI::App& app, const Invocation& invocation);
void AddScaleCommand(CLI::App& app, const Invocation& invocation);
void AddStatusCommand(CLI::App& app, const Invocation& invocation);
void AddWhyCommand(CLI::App& app, const Invocation& invocation);

// An apm block, and reads of Nomad, and of a pool's room on Harvester, as it does them.
struct CheckedApm {
  std::string name;
  config::NomadSettings nomad;
  std::function<absl::Status(const runtime::Context& context)> read;
  std::function<absl::Status(const runtime::Context& context, const demand::HomePool& pool)>
      read_room;
};

// One run of a command that connects to both systems.
struct CommandRun {
  const scaling::Maintenance& maintenance;
  const runtime::Context& context;  // Ctrl-C, SIGTERM and SIGHUP cancel it
  const Settings& settings;
  std::ostream& out;
  std::ostream& err;          // one line for each object that was not handled
  const ErrorWriter& errors;  // the command's own
  Terminal terminal = {};     // the one behind `out`
  Prompter prompter = {};
  // For `check`: the apm blocks of this driver that the policy's checks name.
  std::vector<CheckedApm> apms{};
  std::vector<UnreadPolicy> unread{};          // for `check`: what else of the files is wrong
  bool (*has_reader)() = [] { return true; };  // of the standard output

  // False: nobody reads the result any more, which may not be written yet. What only waits ends.
  bool IsRead() const { return out.good() && has_reader(); }
};

// The pool of the policy, which must be there.
scaling::PoolKey KeyOf(const CommandRun& run);
// Observes it.
absl::StatusOr<scaling::Inspection> InspectPool(const CommandRun& run);
// "pools of the namespace: db, web".
std::string PoolsText(const std::set<scaling::PoolKey>& pools);

// Does `act`, whose lines tell people what it does. For a program nobody is asked, and the document
// that `act` makes, if it makes one, is printed instead of the lines.
int DoForOutput(
    const CommandRun& run, const std::string& output,
    const std::function<int(const CommandRun& run, nlohmann::ordered_json* document)>& act);

// A pool of the files, for a command that reads Nomad, and its runs if Harvester can be asked.
struct DemandPool {
  FileSettings files;
  std::optional<CommandRun> run;
  std::string problem{};  // why there is no run
};

// For people, a line "Not read: policy web: web.hcl:4:18: …" for each.
std::string UnreadText(const std::vector<UnreadPolicy>& unread);
// {"policy", "place", "error"}.
nlohmann::ordered_json UnreadDocument(const UnreadPolicy& unread);

// What a command without the agent's files may be given instead.
inline constexpr char kQueryInstead[] = "give a query such as 'nodes-needed node_class=web'";
// Says which files were read although no option named them.
void NoteFound(const FileSettings& files, const ErrorWriter& errors);

// "Nomad at nomad_address ADDRESS, with the token of nomad_token_file FILE".
std::string NomadText(const config::NomadSettings& settings);
// The cure of a read for the count from the work that failed.
std::string CureOfDemand(const absl::Status& failed, const config::NomadSettings& settings);

// One run of a command about the work in Nomad.
struct DemandRun {
  demand::Reader& reader;
  demand::RoomReader* harvester = nullptr;  // null: the apm block has no connection to Harvester
  const config::NomadSettings& nomad;
  const runtime::Context& context;     // Ctrl-C, SIGTERM and SIGHUP cancel it
  std::vector<DemandPool> pools;       // of the enabled policies of the files, by name
  std::vector<UnreadPolicy> unread{};  // policies and files without a pool here
  std::ostream& out;
  const ErrorWriter& errors;
  Terminal terminal = {};
};

// The commands; each returns the exit code.
//
// CheckPreconditions: 0: nothing failed. 1: something failed. Requires a complete policy.
struct WatchArguments {
  bool watch = false;  // until the context ends
  base::Duration interval = std::chrono::seconds(2);
};
struct CheckArguments {
  std::string output = kForPeople;
  WatchArguments watch = {.interval = std::chrono::seconds(10)};
};
int CheckPreconditions(const CommandRun& run, const CheckArguments& arguments);
struct ReplaceArguments {
  std::string output = kForPeople;
  std::vector<std::string> names;
  bool drifted = false;
  std::string older_than;
  std::string reason = "nomad-harvester replace";
  bool cancel = false;
  bool yes = false;
  std::optional<base::Duration> age{};  // of older_than
};
int ReplaceVms(const CommandRun& run, const ReplaceArguments& arguments);
struct EvacuateArguments {
  std::string output = kForPeople;
  std::string host;
  bool all = false;  // also VMs that can migrate
  bool no_wait = false;
  bool yes = false;
};
// 0: none of the VMs is on the host any more or, with no_wait, all are to be replaced. 1: something
// was not done, or the host is not cordoned. Waits until the context ends, whatever the VMs do.
int EvacuateHost(const CommandRun& run, const EvacuateArguments& arguments);
struct DemandArguments {
  std::string output = kForPeople;
  std::vector<std::string> query;  // its words; empty: the queries of the files' policies
};
// 0: answered. 1: Nomad or one of several policies cannot be read. 2: the only query is wrong, or
// there is none.
int ShowDemand(const DemandRun& run, const DemandArguments& arguments);
struct WhyArguments {
  std::string output = kForPeople;
  std::string job;
  std::string ns = "default";
};
// 0: answered, whether something of the job waits or not. 1: Nomad or one of several policies
// cannot be read, or Nomad has no such job. `job` may also be "NAMESPACE/JOB".
int ShowWhy(const DemandRun& run, const WhyArguments& arguments);
struct StatusArguments {
  std::string output = kForPeople;   // or wide, json, yaml
  std::vector<std::string> words{};  // of the command: `vm`, once the pool's name is taken
  std::string vm;                    // empty: the pool
  bool all = false;                  // the pools of all policies
  bool history = false;              // removed VMs
  WatchArguments watch = {};
};
// 0: ready. 3: not ready. 1: Harvester or Nomad cannot be read, or there is no such VM. The history
// needs Harvester alone: 0 shown, 1 it cannot be read.
int ShowStatus(const CommandRun& run, const StatusArguments& arguments);
// The same for several pools, one line each: the first of 1, 3, 4 and 0 that any pool has. What is
// `unread` has a line, too, and makes it 1. There must be a run.
int ShowStatusOfAll(const std::vector<CommandRun>& runs, const std::vector<UnreadPolicy>& unread,
                    const StatusArguments& arguments);
struct RepairArguments {
  std::string output = kForPeople;  // with dry_run
  bool dry_run = false;
  bool yes = false;            // do not ask
  bool without_nodes = false;  // adopt: even if Nomad knows no node of the pool
};
// 0: everything is clean. 1: something was not done. Prints one line for each thing done, and one
// to `err` for each thing not done. Asks before it works on every pool of a namespace, and before
// it deletes something of one pool.
int CollectGarbage(const CommandRun& run, const RepairArguments& arguments);
// 0: paused. 1: the pool's Lease was not written, or that is not known. Nomad need not answer.
int PausePool(const CommandRun& run, const base::Hold& hold);
// 0: the pool belongs to this Nomad. 1: something was not done. Asks before it writes.
int AdoptPool(const CommandRun& run, const RepairArguments& arguments);
struct PlanArguments {
  std::int64_t count = 0;
  std::string output = kForPeople;
  bool exit_code = false;  // answer by the exit code, too
  WatchArguments watch = {.interval = std::chrono::seconds(10)};
};
// 0: planned, even if it would be refused. 1: a system cannot be read. 2: CheckCountOf failed.
// With exit_code 0: nothing would change. 2: something would. 1: the Scale would be refused, or an
// error.
int ShowPlan(const CommandRun& run, const PlanArguments& arguments);
// Why the text of a command line is no count of VMs; empty: it is one.
std::string ProblemOfCount(const std::string& text);
// 0: printed. 1: Harvester cannot be read, or the policy's sources are missing there.
int RenderPolicy(const CommandRun& run, const std::string& output);
struct InitArguments {
  std::string dir = ".";
  std::string kubeconfig;
  std::string pool;
  std::string ns;
  std::string image;
  std::string network;
  std::string ssh_key;
  bool force = false;
  bool rbac = false;
};
// 0: written. 1: Harvester cannot be read, or a file exists. 2: a choice is missing or does not
// exist. Asks for missing choices if somebody can be asked.
int WriteInitFiles(const CommandRun& run, const InitArguments& arguments);

// Says why, according to the policy's file, the agent would never ask for this count: it does not
// accept the policy, or the count is outside of min and max. OK: it may, or there is no file.
absl::Status CheckCountOf(const Settings& settings, std::int64_t count);

// Each adds options to the command, which what they are read into must outlive.
//
// The required count of VMs: "3" or --count 3.
void AddCountOption(CLI::App& command, std::int64_t& count);
// -o, --output, with the values kOutputs or `names`; the default is the initial value of `output`.
CLI::Option* AddOutputOption(CLI::App& command, std::string& output,
                             const std::vector<std::string>& names = {std::begin(kOutputs),
                                                                      std::end(kOutputs)});
// -w, --watch and --interval.
void AddWatchOptions(CLI::App& command, WatchArguments& watch);
// --set KEY=VALUE, repeatable.
CLI::Option* AddSetOption(CLI::App& command, std::vector<std::string>& settings,
                          const std::string& description);
// Suffix of an error about an argument that may be a setting.
inline constexpr char kHowToSet[] = "; a setting is given as --set KEY=VALUE";
CLI::Option* AddAgentConfigOption(CLI::App& command, OperatorFiles& files);
// --agent-config, --policy and --policy-name.
void AddFileOptions(CLI::App& command, OperatorFiles& files);
// The argument POOL, short for --policy-name, behind those that the command has already.
void AddPoolArgument(CLI::App& command, OperatorFiles& files);

using Task = std::function<int(const CommandRun& run)>;

// Command-line settings of the cluster and the pool.
struct SettingArguments {
  OperatorFiles files;
  std::vector<std::string> pairs;  // KEY=VALUE
  // Shorthand for a key of `pairs`, which it overrides; empty: not given.
  std::string ns;
  std::string kubeconfig;
};
// Returns the pairs, including those given by shorthand.
std::vector<std::string> PairsOf(const SettingArguments& arguments);

// Reads the files and the settings (reports every problem to `errors`: kExitUsage), connects to
// both systems and runs the task under a context that Ctrl-C, SIGTERM and SIGHUP cancel: the exit
// code is then kExitSignal plus the signal's number, whatever the task returns. A second Ctrl-C or
// SIGTERM ends the process at once. Warnings go to standard error.
int RunConnected(const ErrorWriter& errors, const SettingArguments& arguments, PolicyUse use,
                 const config::StringMap& environment, const Task& task);
// Likewise for the pool of each enabled policy of the files that reaches this plugin, sorted by
// name; if `arguments` has a namespace, only for pools in it. The systems may differ. What cannot
// be read is the task's to tell, unless that is all of them: kExitUsage.
using TaskOfAll = std::function<int(const std::vector<CommandRun>& runs,
                                    const std::vector<UnreadPolicy>& unread)>;
int RunConnectedToAll(const ErrorWriter& errors, const SettingArguments& arguments,
                      const config::StringMap& environment, const TaskOfAll& task);

// Likewise for a command that reads Nomad, with the settings of the agent's apm block with this
// driver or else of its target block.
struct DemandReads {
  bool policies = true;    // the pools of the files' policies; false: files may be absent
  bool harvester = false;  // and what holds them; a pool that cannot be asked has a problem
};
using DemandTask = std::function<int(const DemandRun& run)>;
int RunDemand(const ErrorWriter& errors, const SettingArguments& arguments,
              const DemandReads& reads, const config::StringMap& environment,
              const DemandTask& task);

// A subcommand that does this, with the options --agent-config, --policy, --policy-name, --set and
// the shorthands.
struct MaintenanceCommand {
  std::string name;
  std::string description;
  std::string exit_codes;  // the last line of its help
  PolicyUse use;
  Task task;
  // Checks further options first; any result but kExitOk ends the command.
  std::function<int(const OperatorFiles& files)> check = nullptr;
  // The words of a command whose arguments are names, such as those of VMs. One of them may also be
  // the pool's (TakePolicyName). Null: the pool is an argument of its own.
  std::vector<std::string>* words = nullptr;
  // Adds the arguments that come before the pool.
  std::function<void(CLI::App& command)> add_arguments = nullptr;
  // For a command that can run for every pool: says whether it should, and does it.
  std::function<bool()> is_for_all = nullptr;
  TaskOfAll task_of_all = nullptr;
};
CLI::App* AddMaintenanceCommand(CLI::App& app, const Invocation& invocation,
                                const MaintenanceCommand& command);

// The result of one look at the systems.
struct Look {
  int exit_code = kExitOk;
  std::string text;   // what is shown
  std::string state;  // changes only with real changes, not with ages and times
  std::string error;  // why nothing is shown; `text` is empty
};

// Shows one look, or with `arguments.watch` looks again until the context ends or nobody reads any
// more. On a terminal that redraws, uses its alternate screen, under a line with `title`; the last
// look stays visible at the end. Elsewhere prints only changes, and each error once.
//
// Returns the exit code of the last look.
int ShowLooks(const CommandRun& run, const WatchArguments& arguments, const std::string& title,
              const std::function<Look()>& look);

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_COMMAND_H_
