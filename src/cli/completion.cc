// SPDX-License-Identifier: Apache-2.0
// The completion scripts, and the answer to what they ask.
#include <algorithm>
#include <chrono>
#include <iostream>
#include <set>
#include <utility>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/config/option_table.h"

#include "absl/strings/str_split.h"
#include "command.h"
#include "command_table.h"
#include "text.h"

namespace nomad_harvester::cli {
namespace {

// Somebody has pressed the tab key.
constexpr base::Duration kNamesWithin = std::chrono::seconds(3);

// The answer if the name of a file may stand there.
constexpr char kFiles[] = ":files";

// In each of them a key, "KEY=", is not followed by a space.
constexpr char kBash[] = R"sh(# bash completion for nomad-harvester
_nomad_harvester() {
  local program=${COMP_WORDS[0]/#\~/$HOME} current=${COMP_WORDS[COMP_CWORD]#=}
  mapfile -t COMPREPLY < <(timeout 3 "$program" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  COMPREPLY=("${COMPREPLY[@]%%$'\t'*}")
  case ${COMPREPLY[0]-} in
    :files)
      compopt -o filenames 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -f -- "$current")
      ;;
    *=) compopt -o nospace 2>/dev/null ;;
  esac
}
complete -F _nomad_harvester nomad-harvester
)sh";

constexpr char kZsh[] = R"sh(#compdef nomad-harvester
_nomad-harvester() {
  local -a found
  found=(${(f)"$(timeout 3 ${~words[1]} __complete "${(@Q)words[2,CURRENT]}" 2>/dev/null)"})
  case $found[1] in
    '') return 1 ;;
    :files) compset -P '--*='; _files ;;
    *=) compadd -S '' -- $found ;;
    *)
      found=("${(@)found//:/\\:}")
      found=("${(@)found/$'\t'/:}")
      _describe nomad-harvester found
      ;;
  esac
}
if [[ $funcstack[1] == _nomad-harvester ]]; then
  _nomad-harvester "$@"
else
  compdef _nomad-harvester nomad-harvester
fi
)sh";

constexpr char kFish[] = R"sh(# fish completion for nomad-harvester
function __nomad_harvester_complete
  set -l words (commandline -opc)
  set -l current (commandline -ct)
  set -l program (string replace -r '^~' $HOME -- $words[1])
  set -l found (timeout 3 $program __complete $words[2..] "$current" 2>/dev/null)
  if test "$found" = :files
    set -l option (string match -r '^--[^=]*=' -- "$current")
    set found "$option"(__fish_complete_path (string replace -r '^--[^=]*=' '' -- "$current"))
  end
  printf '%s\n' $found
end
complete -c nomad-harvester -f -a '(__nomad_harvester_complete)'
)sh";

// Returns the first sentence, without its full stop.
std::string Short(const std::string& description) {
  return description.substr(
      0, std::min({description.find(". "), description.find(": "), description.find("; "),
                   description.find('\n'), description.find_last_not_of('.') + 1}));
}

// bash has "=" as a word of its own.
std::vector<std::string> Joined(const std::vector<std::string>& words) {
  std::vector<std::string> joined;
  bool continues = false;
  for (const std::string& word : words) {
    continues = !joined.empty() && (continues || word == "=");
    if (continues) {
      joined.back() += word;
    } else {
      joined.push_back(word);
    }
    continues = word == "=";
  }
  return joined;
}

// The settings in the words of an unfinished command, whatever else is among them.
SettingArguments ArgumentsOf(const std::vector<std::string>& words,
                             const config::StringMap& environment) {
  SettingArguments arguments;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::size_t equals = words[i].find('=');
    const std::string name = words[i].substr(0, equals);
    const bool has_value = equals != std::string::npos;
    if (!has_value && i + 1 == words.size()) break;
    const std::string value = has_value ? words[i].substr(equals + 1) : words[i + 1];
    if (name == "--agent-config") arguments.files.agent_config.push_back(value);
    if (name == "--policy") arguments.files.policy = value;
    if (name == "--policy-name") arguments.files.policy_name = value;
    if (name == "--set") arguments.pairs.push_back(value);
    if (name == "-n" || name == "--namespace") arguments.ns = value;
    if (name == "--kubeconfig") arguments.kubeconfig = value;
  }
  arguments.files = FindAgentFiles(std::move(arguments.files), environment);
  std::vector<std::string> names = words;
  TakePolicyName(&arguments.files, &names);
  return arguments;
}

class Completion {
 public:
  Completion(const std::vector<std::string>& words, const Invocation& invocation)
      : words_(Joined(words)),
        invocation_(invocation),
        errors_(invocation.Errors(kCompleteCommand)) {
    current_ = words_.back();
    words_.pop_back();
    // bash replaces its own last word alone.
    hidden_ = current_.size() - (words.back() == "=" ? 0 : words.back().size());
    arguments_ = ArgumentsOf(words_, invocation.environment);
  }

  int Print(const std::vector<CommandEntry>& table) {
    const auto name = std::find_if(words_.begin(), words_.end(),
                                   [](const std::string& word) { return !word.starts_with('-'); });
    if (name == words_.end() || *name == "help") PrintCommands(table);
    const auto command =
        name == words_.end()
            ? table.begin()
            : std::find_if(table.begin() + 1, table.end(),
                           [&](const CommandEntry& entry) { return entry.name == *name; });
    return command == table.end() ? kExitOk : PrintWords(*command);
  }

 private:
  void Offer(const std::string& word, const std::string& description = "") const {
    if (!word.starts_with(current_)) return;
    std::cout << Printable(word.substr(hidden_))
              << (description.empty() ? "" : "\t" + Short(description)) << "\n";
  }

  void PrintCommands(const std::vector<CommandEntry>& table) const {
    for (std::size_t i = 1; i < table.size(); ++i) Offer(table[i].name, table[i].description);
    Offer("help", "Print the help of a command");
  }

  // The value of an option, "--output json" or "--output=json", or else options and arguments.
  int PrintWords(const CommandEntry& command) const {
    const std::size_t equals = current_.starts_with("--") ? current_.find('=') : std::string::npos;
    const bool holds_both = equals != std::string::npos;
    const std::string before = holds_both        ? current_.substr(0, equals)
                               : !words_.empty() ? words_.back()
                                                 : "";
    for (const OptionEntry& option : command.options) {
      if (option.argument.empty() ||
          std::find(option.names.begin(), option.names.end(), before) == option.names.end()) {
        continue;
      }
      return PrintValues(option, holds_both ? before + "=" : "");
    }
    int exit_code = kExitOk;
    for (const OptionEntry& option : command.options) {
      for (const std::string& name : option.names) Offer(name, option.description);
      if (option.names.empty() && !current_.starts_with('-')) exit_code = PrintValues(option, "");
    }
    return exit_code;
  }

  // Each behind `prefix`.
  int PrintValues(const OptionEntry& option, const std::string& prefix) const {
    for (const std::string& value : option.values) Offer(prefix + value);
    if (option.argument.starts_with("FILE")) std::cout << kFiles << "\n";
    if (option.argument == "KEY=VALUE") PrintSettings(prefix);
    if (option.argument == "NAMESPACE") return PrintNamespaces(prefix);
    const bool names_vm = option.positional.find("VM") != std::string::npos;
    const bool names_pool = option.positional.find("POOL") != std::string::npos;
    if (names_pool || option.argument == "NAME") {
      const int exit_code = PrintPolicies(prefix);
      if (!names_vm) return exit_code;
    }
    if (option.argument == "HOST") return PrintHosts(prefix);
    if (!names_vm) return kExitOk;
    return RunConnected(errors_, arguments_, PolicyUse::kPool, invocation_.environment,
                        [&](const CommandRun& run) { return PrintVms(run, prefix); });
  }

  // Keys, or the values of the key that is there.
  void PrintSettings(const std::string& prefix) const {
    for (const config::Option& known : config::OptionTable()) {
      const std::string key = prefix + std::string(known.key) + "=";
      if (!current_.starts_with(key)) {
        Offer(key);
        continue;
      }
      const std::string_view values =
          known.type == config::OptionType::kBool ? "true,false" : known.enum_values;
      for (const absl::string_view value :
           absl::StrSplit(base::ToAbsl(values), ',', absl::SkipEmpty())) {
        Offer(key + std::string(value));
      }
    }
  }

  // Unless the words name one already.
  int PrintPolicies(const std::string& prefix) const {
    if (!arguments_.files.policy_name.empty()) return kExitOk;
    const auto names = PolicyNames(arguments_.files);
    if (!names.ok()) return errors_.Refuse(names.status(), kExitUsage);
    for (const std::string& name : *names) Offer(prefix + name);
    return kExitOk;
  }

  // Those of the pools in the files.
  int PrintNamespaces(const std::string& prefix) const {
    OperatorFiles files = arguments_.files;
    files.policy_name.clear();
    const auto all = ReadFilesOfAll(std::move(files));
    if (!all.ok()) return errors_.Refuse(all.status(), kExitUsage);
    std::set<std::string> namespaces;
    for (const FileSettings& each : all->policies) {
      for (const FilePool& pool : each.pools) namespaces.insert(pool.key.ns);
    }
    for (const std::string& name : namespaces) Offer(prefix + name);
    return kExitOk;
  }

  // Those that any pool of the files can use.
  int PrintHosts(const std::string& prefix) const {
    const auto print = [&](const CommandRun& run) {
      const auto seen = Inspect(run);
      const absl::Status& problem = seen.ok() ? base::GetStatus(seen->hosts) : seen.status();
      if (!problem.ok()) return run.errors.Refuse(problem, kExitFailure);
      for (const std::string& host : *seen->hosts) Offer(prefix + host);
      return kExitOk;
    };
    if (!arguments_.files.policy_name.empty() || NamesPool(arguments_.pairs)) {
      return RunConnected(errors_, arguments_, PolicyUse::kPool, invocation_.environment, print);
    }
    return RunConnectedToAll(
        errors_, arguments_, invocation_.environment,
        [&](const std::vector<CommandRun>& runs, const std::vector<UnreadPolicy>& /*unread*/) {
          return print(runs.front());
        });
  }

  int PrintVms(const CommandRun& run, const std::string& prefix) const {
    const auto seen = Inspect(run);
    if (!seen.ok()) return run.errors.Refuse(seen.status(), kExitFailure);
    for (const scaling::VmView* const view : seen->snapshot.vms()) Offer(prefix + view->vm->name);
    return kExitOk;
  }

  static absl::StatusOr<scaling::Inspection> Inspect(const CommandRun& run) {
    return run.maintenance.Inspect(run.context.WithTimeout(kNamesWithin), *run.settings.policy,
                                   /*defines_vms=*/false);
  }

  std::vector<std::string> words_;  // before the last one
  std::string current_;             // the last one
  std::size_t hidden_ = 0;          // so many bytes of it are no part of an answer
  const Invocation& invocation_;
  const ErrorWriter errors_;
  SettingArguments arguments_;  // of the words
};

}  // namespace

std::string CompletionScript(const std::string& shell) {
  return shell == "bash" ? kBash : shell == "zsh" ? kZsh : kFish;
}

int Complete(const std::vector<std::string>& words, const std::vector<CommandEntry>& table,
             const Invocation& invocation) {
  return words.empty() ? kExitOk : Completion(words, invocation).Print(table);
}

}  // namespace nomad_harvester::cli
