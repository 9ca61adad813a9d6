// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "command_table.h"

namespace nomad_harvester::cli {
namespace {

using Entries = std::vector<CommandEntry>;

bool TakesKey(const OptionEntry& option) { return option.argument == "KEY=VALUE"; }
bool TakesFile(const OptionEntry& option) { return option.argument.starts_with("FILE"); }

// The first sentence, without its end.
std::string Short(const std::string& description) {
  return description.substr(
      0, std::min({description.find(". "), description.find(": "), description.find("; "),
                   description.find('\n'), description.find_last_not_of('.') + 1}));
}

std::string Quoted(const std::string& text) {
  return "'" + absl::StrReplaceAll(text, {{"'", "'\\''"}}) + "'";
}

std::vector<std::string> CommandNames(const Entries& table) {
  std::vector<std::string> names;
  names.reserve(table.size());
  for (std::size_t i = 1; i < table.size(); ++i) names.push_back(table[i].name);
  names.emplace_back("help");
  return names;
}

// What may stand for a word of the command: its options, and the values of its positional ones.
std::vector<std::string> WordsOf(const CommandEntry& command) {
  std::vector<std::string> words;
  for (const OptionEntry& option : command.options) {
    const std::vector<std::string>& more = option.names.empty() ? option.values : option.names;
    words.insert(words.end(), more.begin(), more.end());
  }
  return words;
}

std::string Bash(const Entries& table) {
  std::string arguments;
  std::string words = "    '') words=" +
                      Quoted(absl::StrJoin(CommandNames(table), " ") + " " +
                             absl::StrJoin(WordsOf(table.front()), " ")) +
                      " ;;\n    help) words=" + Quoted(absl::StrJoin(CommandNames(table), " ")) +
                      " ;;\n";
  for (std::size_t i = 1; i < table.size(); ++i) {
    const CommandEntry& command = table[i];
    words += "    " + command.name + ") words=" + Quoted(absl::StrJoin(WordsOf(command), " "));
    for (const OptionEntry& option : command.options) {
      if (!option.names.empty() || option.names_of.empty()) continue;
      words +=
          "; [[ $cur == -* ]] || words+=\" $(_nomad_harvester_names " + option.names_of + ")\"";
    }
    words += " ;;\n";
    for (const OptionEntry& option : command.options) {
      if (option.names.empty() || option.argument.empty()) continue;
      arguments += "    " + absl::StrJoin(option.names, "|", [&](std::string* out, auto& name) {
                     *out += command.name + ":" + name;
                   });
      arguments += ") ";
      if (TakesFile(option)) {
        arguments +=
            "compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "
            "\"$cur\")";
      } else if (!option.values.empty()) {
        if (TakesKey(option)) {
          arguments +=
              "if [[ -n $key ]]; then\n"
              "        mapfile -t COMPREPLY < <(compgen -W " +
              Quoted(absl::StrJoin(option.pairs, " ")) +
              " -- \"$key=$cur\")\n"
              "        COMPREPLY=(\"${COMPREPLY[@]#\"$key=\"}\")\n"
              "        return\n"
              "      fi\n"
              "      compopt -o nospace 2>/dev/null; ";
        }
        arguments += "mapfile -t COMPREPLY < <(compgen -W " +
                     Quoted(absl::StrJoin(option.values, " ")) + " -- \"$cur\")";
      } else if (!option.names_of.empty()) {
        arguments += "mapfile -t COMPREPLY < <(compgen -W \"$(_nomad_harvester_names " +
                     option.names_of + ")\" -- \"$cur\")";
      } else {
        arguments += ":";
      }
      arguments += "; return ;;\n";
    }
  }
  return R"(# bash completion for nomad-harvester
_nomad_harvester_names() {
  timeout 3 "${COMP_WORDS[0]}" __names "$1" -- "${COMP_WORDS[@]:1:COMP_CWORD-1}" 2>/dev/null
}
_nomad_harvester() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} command='' words='' word key=''
  # bash takes "=" for a word of its own: --set KEY = VALUE, --output = VALUE, --set = KEY = VALUE.
  local before=$((COMP_CWORD - 1))
  if [[ $cur == '=' ]]; then
    cur=''
  elif [[ $prev == '=' ]]; then
    before=$((COMP_CWORD - 2))
    prev=${COMP_WORDS[before]}
  else
    before=0
  fi
  if ((before > 1)) && [[ $prev != -* ]]; then
    key=$prev
    prev=${COMP_WORDS[before - 1]}
    [[ $prev == '=' ]] && prev=${COMP_WORDS[before - 2]}
  fi
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    [[ $word == -* ]] && continue
    command=$word
    break
  done
  COMPREPLY=()
  case $command:$prev in
)" + arguments +
         R"(  esac
  case $command in
)" + words +
         R"(  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}
complete -F _nomad_harvester nomad-harvester
)";
}

std::string ZshDescription(const std::string& description) {
  return absl::StrReplaceAll(Short(description),
                             {{"[", "\\["}, {"]", "\\]"}, {":", "\\:"}, {"\\", "\\\\"}});
}

// One of _arguments' specifications for each name of the option.
std::string ZshSpecs(const OptionEntry& option) {
  std::string argument;
  if (!option.argument.empty()) {
    argument = ":" + absl::StrReplaceAll(option.argument, {{":", "\\:"}}) + ":";
    if (TakesKey(option)) {
      argument += "{if [[ $PREFIX == *=* ]]; then compadd -- " + absl::StrJoin(option.pairs, " ") +
                  "; else compadd -S \"\" -- " + absl::StrJoin(option.values, " ") + "; fi}";
    } else if (!option.values.empty()) {
      argument += "(" + absl::StrJoin(option.values, " ") + ")";
    } else if (TakesFile(option)) {
      argument += "_files";
    } else if (!option.names_of.empty()) {
      argument += "{compadd -- ${(f)\"$(_nomad_harvester_names " + option.names_of + ")\"}}";
    } else {
      argument += " ";
    }
  }
  if (option.names.empty()) return " \\\n        " + Quoted("1" + argument);
  std::string specs;
  for (const std::string& name : option.names) {
    const bool is_long = name.starts_with("--");
    specs += " \\\n        " + Quoted((option.repeats ? "*" : "") + name +
                                      (argument.empty() ? ""
                                       : is_long        ? "="
                                                        : "+") +
                                      "[" + ZshDescription(option.description) + "]" + argument);
  }
  return specs;
}

std::string Zsh(const Entries& table) {
  std::string commands;
  std::string cases;
  for (std::size_t i = 1; i < table.size(); ++i) {
    const CommandEntry& command = table[i];
    commands += "    " + Quoted(command.name + ":" + Short(command.description)) + "\n";
    cases += "    " + command.name + ")\n      _arguments";
    for (const OptionEntry& option : command.options) cases += ZshSpecs(option);
    cases += " ;;\n";
  }
  std::string general;
  for (const OptionEntry& option : table.front().options) general += ZshSpecs(option);
  return R"(#compdef nomad-harvester
_nomad_harvester_names() {
  timeout 3 nomad-harvester __names $1 -- "${(@)words[1,CURRENT-1]}" 2>/dev/null
}
_nomad-harvester() {
  local -a commands
  commands=(
)" + commands +
         R"(    'help:Print the help of a command'
  )
  if (( CURRENT == 2 )); then
    _describe command commands
    _arguments)" +
         general + R"(
    return
  fi
  local command=$words[2]
  shift words
  (( CURRENT-- ))
  case $command in
    help) _describe command commands ;;
)" + cases +
         R"(  esac
}
if [[ $funcstack[1] == _nomad-harvester ]]; then
  _nomad-harvester "$@"
else
  compdef _nomad-harvester nomad-harvester
fi
)";
}

std::string FishOption(const OptionEntry& option, const std::string& condition) {
  std::string line = "complete -c nomad-harvester -n " + Quoted(condition);
  for (const std::string& name : option.names) {
    line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  }
  if (!option.argument.empty() && !option.names.empty()) {
    line += TakesFile(option) ? " -r -F" : " -x";
  }
  std::vector<std::string> values = option.values;
  values.insert(values.end(), option.pairs.begin(), option.pairs.end());
  if (!option.names_of.empty()) {
    values = {"(timeout 3 nomad-harvester __names " + option.names_of +
              " -- (commandline -opc)[2..] 2>/dev/null)"};
  }
  if (!values.empty()) line += " -a " + Quoted(absl::StrJoin(values, " "));
  return line + " -d " + Quoted(Short(option.description)) + "\n";
}

std::string Fish(const Entries& table) {
  constexpr char kNoCommand[] = "__fish_use_subcommand";
  std::string script = "# fish completion for nomad-harvester\ncomplete -c nomad-harvester -f\n";
  for (const OptionEntry& option : table.front().options) script += FishOption(option, kNoCommand);
  for (std::size_t i = 1; i < table.size(); ++i) {
    const CommandEntry& command = table[i];
    script += std::string("complete -c nomad-harvester -n ") + kNoCommand + " -a " + command.name +
              " -d " + Quoted(Short(command.description)) + "\n";
    for (const OptionEntry& option : command.options) {
      script += FishOption(option, "__fish_seen_subcommand_from " + command.name);
    }
  }
  return script;
}

}  // namespace

std::string CompletionScript(const std::string& shell, const Entries& table) {
  if (shell == "bash") return Bash(table);
  return shell == "zsh" ? Zsh(table) : Fish(table);
}

}  // namespace nomad_harvester::cli
