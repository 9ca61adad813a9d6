// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <fcntl.h>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "nomad_harvester/base/file.h"
#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/base/text.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "command.h"
#include "init_files.h"
#include "text.h"

namespace nomad_harvester::cli {
namespace {

constexpr char kManagement[] = "management";  // the network that every Harvester has
constexpr char kDefaultNamespace[] = "nomad";
constexpr char kDefaultPool[] = "workers";
constexpr char kNoKey[] = "none";
constexpr char kSources[] = "default";  // where Harvester puts images and networks

// A choice among existing objects.
struct Question {
  std::string what;    // "image"
  std::string option;  // "--image"
  std::string given;   // empty: not given
  std::vector<std::string> choices;
  std::string preferred{};  // the answer to an empty line; empty: the first
  // Take the preferred answer without a question if nobody can be asked.
  bool may_assume = false;
  std::string if_none{};  // what to do if there is no choice
};

std::string PreferredOf(const Question& question) {
  return question.preferred.empty() ? question.choices.front() : question.preferred;
}

// Matches the full name, or the plain name if only one namespace has it.
std::optional<std::string> Match(const Question& question, const std::string& name) {
  std::vector<std::string> matches;
  for (const std::string& choice : question.choices) {
    if (choice == name) return choice;
    if (choice.ends_with("/" + name)) matches.push_back(choice);
  }
  return matches.size() == 1 ? std::optional(matches.front()) : std::nullopt;
}

absl::Status NoMatch(const Question& question, const std::string& name) {
  return base::InvalidArgument(question.option + ": there is no " + question.what + " " +
                               Printable(name) +
                               "; there are: " + absl::StrJoin(question.choices, ", "));
}

// Returns the answer given by number or by name.
std::optional<std::string> AnswerOf(const Question& question, const std::string& line) {
  if (line.empty()) return PreferredOf(question);
  const auto number = base::ParseInt(line);
  const auto count = static_cast<std::int64_t>(question.choices.size());
  if (!number.ok() || *number < 1 || *number > count) return Match(question, line);
  return question.choices[static_cast<std::size_t>(*number - 1)];
}

absl::StatusOr<std::string> AskLine(const CommandRun& run, const std::string& prompt) {
  run.out << Printable(prompt) << " " << std::flush;
  const std::optional<std::string> line = run.prompter.read_line(run.context);
  if (!line.has_value() || run.context.Done()) run.out << "\n";
  NH_RETURN_IF_ERROR(run.context.Check());
  if (!line.has_value()) return absl::CancelledError("no answer; nothing was written");
  return std::string(base::TrimAsciiSpace(*line));
}

absl::StatusOr<std::string> Ask(const CommandRun& run, const Question& question) {
  run.out << "\n";
  for (std::size_t i = 0; i < question.choices.size(); ++i) {
    run.out << "  " << i + 1 << "  " << Printable(question.choices[i]) << "\n";
  }
  std::string name = question.what;
  name.front() = absl::ascii_toupper(static_cast<unsigned char>(name.front()));
  while (true) {
    NH_ASSIGN_OR_RETURN(const std::string line,
                        AskLine(run, name + " [" + PreferredOf(question) + "]:"));
    if (const auto answer = AnswerOf(question, line)) return *answer;
    run.out << Printable(base::Message(NoMatch(question, line))) << "\n";
  }
}

absl::StatusOr<std::string> Choose(const CommandRun& run, const Question& question) {
  if (question.choices.empty()) return base::InvalidArgument(question.if_none);
  if (!question.given.empty()) {
    const auto found = Match(question, question.given);
    if (!found.has_value()) return NoMatch(question, question.given);
    return *found;
  }
  if (run.prompter.interactive) return Ask(run, question);
  if (question.may_assume || question.choices.size() == 1) return PreferredOf(question);
  return base::InvalidArgument(question.option + ": choose the " + question.what +
                               "; there are: " + absl::StrJoin(question.choices, ", "));
}

// Returns the display name, unless another image of the namespace has the same.
std::string NameOf(const harvester::Image& image, const std::vector<harvester::Image>& all) {
  const auto same = std::count_if(all.begin(), all.end(), [&](const harvester::Image& other) {
    return other.ns == image.ns && other.display_name == image.display_name;
  });
  return image.ns + "/" +
         (same == 1 && !image.display_name.empty() ? image.display_name : image.name);
}

absl::StatusOr<std::string> ChooseNamespace(const CommandRun& run, const InitArguments& arguments,
                                            const std::vector<std::string>& namespaces) {
  const std::string wanted = arguments.ns.empty() ? kDefaultNamespace : arguments.ns;
  // The token lacks the right to list them; check shows whether this one exists.
  if (namespaces.empty()) return wanted;
  const bool exists = std::find(namespaces.begin(), namespaces.end(), wanted) != namespaces.end();
  return Choose(run, {.what = "namespace",
                      .option = "--namespace",
                      .given = arguments.ns,
                      .choices = namespaces,
                      .preferred = exists ? wanted : "",
                      .may_assume = exists});
}

absl::Status ChooseImage(const CommandRun& run, const InitArguments& arguments,
                         const std::vector<harvester::Image>& images, InitChoices* choices) {
  Question question = {.what = "image",
                       .option = "--image",
                       .given = arguments.image,
                       .choices = {},
                       .if_none =
                           "Harvester has no image that can be used and that this token may "
                           "list; upload one (docs/lifecycle.md, \"The image\")"};
  for (const harvester::Image& image : images) {
    if (image.problem.empty()) question.choices.push_back(NameOf(image, images));
  }
  NH_ASSIGN_OR_RETURN(choices->image, Choose(run, question));
  for (const harvester::Image& image : images) {
    if (NameOf(image, images) == choices->image) choices->image_bytes = image.virtual_size;
  }
  return absl::OkStatus();
}

absl::Status ChooseNetworkAndKey(const CommandRun& run, const InitArguments& arguments,
                                 harvester::Choices there, InitChoices* choices) {
  // Networks of Harvester itself, such as its storage network.
  std::erase_if(there.networks,
                [](const std::string& name) { return name.starts_with("harvester-system/"); });
  const bool is_clear = there.networks.size() <= 1;
  there.networks.emplace_back(kManagement);
  NH_ASSIGN_OR_RETURN(choices->network, Choose(run, {.what = "network",
                                                     .option = "--network",
                                                     .given = arguments.network,
                                                     .choices = std::move(there.networks),
                                                     .may_assume = is_clear}));
  there.ssh_keys.emplace_back(kNoKey);
  NH_ASSIGN_OR_RETURN(choices->ssh_key, Choose(run, {.what = "key pair",
                                                     .option = "--ssh-key",
                                                     .given = arguments.ssh_key,
                                                     .choices = std::move(there.ssh_keys),
                                                     .preferred = kNoKey,
                                                     .may_assume = true}));
  if (choices->ssh_key == kNoKey) choices->ssh_key.clear();
  return absl::OkStatus();
}

absl::Status CheckChoices(const InitChoices& choices) {
  return config::ParsePoolPolicy({{"node_group_name", choices.pool},
                                  {"namespace", choices.ns},
                                  {"node_class", choices.pool},
                                  {"name_prefix", choices.pool},
                                  {"image", choices.image},
                                  {"networks", choices.network},
                                  {"cpu_request", "1"},
                                  {"memory_request", "1Gi"}})
      .status();
}

// Checks a pool's name for its uses: labels, a node class, the prefix of the VMs' names. Returns
// "KEY: problem; cure" with `key`, or nothing.
std::string WhyNoPool(const std::string& pool, const std::string& key) {
  const absl::Status usable = CheckChoices({.dir = "",
                                            .pool = pool,
                                            .ns = kDefaultNamespace,
                                            .image = "default/any",
                                            .network = kManagement});
  if (usable.ok()) return "";
  // If there are several lines, the first one is sufficient.
  const std::string text = base::Message(usable);
  const std::string line = text.substr(0, text.find('\n'));
  return key + line.substr(std::min(line.find(':'), line.size()));
}

absl::StatusOr<std::string> ChoosePool(const CommandRun& run, const InitArguments& arguments) {
  if (!arguments.pool.empty()) {
    const std::string problem = WhyNoPool(arguments.pool, "--pool");
    if (!problem.empty()) return base::InvalidArgument(problem);
    return arguments.pool;
  }
  while (run.prompter.interactive) {
    NH_ASSIGN_OR_RETURN(const std::string name,
                        AskLine(run, std::string("Name of the pool [") + kDefaultPool + "]:"));
    if (name.empty()) break;
    const std::string problem = WhyNoPool(name, "the name of a pool");
    if (problem.empty()) return name;
    run.out << Printable(problem) << "\n";
  }
  return kDefaultPool;
}

// The agent looks for the executable by its name in this directory.
std::string PluginDir() {
  std::error_code unreadable;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", unreadable);
  return self.filename() == NOMAD_HARVESTER_PLUGIN_NAME ? self.parent_path().string() : "";
}

absl::Status CheckNoneExists(const std::string& dir) {
  std::vector<std::string> existing;
  for (const std::string& path : InitPaths(dir)) {
    std::error_code ignored;
    const auto type = std::filesystem::symlink_status(path, ignored).type();
    if (type != std::filesystem::file_type::not_found) existing.push_back(path);
  }
  if (existing.empty()) return absl::OkStatus();
  return base::FailedPrecondition("these files exist: " + absl::StrJoin(existing, ", ") +
                                  "; --force replaces them, --dir names another place");
}

// `paths` is a file, or several with ":" between them.
std::string AbsolutePaths(const std::string& paths) {
  std::error_code unreadable;
  if (std::filesystem::exists(paths, unreadable)) return std::filesystem::absolute(paths);
  std::vector<std::string> absolute;
  for (const absl::string_view path : absl::StrSplit(paths, ':', absl::SkipEmpty())) {
    absolute.push_back(std::filesystem::absolute(std::string(path)));
  }
  return absl::StrJoin(absolute, ":");
}

absl::StatusOr<InitChoices> ReadChoices(const CommandRun& run, const InitArguments& arguments) {
  const config::PluginConfig& plugin = run.settings.plugin;
  InitChoices choices = {.dir = std::filesystem::absolute(arguments.dir).lexically_normal(),
                         .plugin_dir = PluginDir(),
                         .harvester_url = plugin.harvester.url,
                         .nomad_address = plugin.nomad.address};
  while (choices.dir.size() > 1 && choices.dir.back() == '/') choices.dir.pop_back();
  if (!arguments.force) NH_RETURN_IF_ERROR(CheckNoneExists(choices.dir));
  if (!plugin.harvester.kubeconfig_path.empty()) {
    choices.kubeconfig = AbsolutePaths(plugin.harvester.kubeconfig_path);
  }
  const std::string ns = arguments.ns.empty() ? kDefaultNamespace : arguments.ns;
  NH_ASSIGN_OR_RETURN(
      const harvester::Choices there,
      run.maintenance.FindChoices(run.context.WithTimeout(kOperatorBudget), {kSources, ns}));
  NH_ASSIGN_OR_RETURN(choices.pool, ChoosePool(run, arguments));
  NH_ASSIGN_OR_RETURN(choices.ns, ChooseNamespace(run, arguments, there.namespaces));
  NH_RETURN_IF_ERROR(ChooseImage(run, arguments, there.images, &choices));
  NH_RETURN_IF_ERROR(ChooseNetworkAndKey(run, arguments, there, &choices));
  NH_RETURN_IF_ERROR(CheckChoices(choices));
  return choices;
}

absl::Status FailedTo(const std::string& act, const std::string& path, const std::error_code& why) {
  return base::FailedPrecondition("cannot " + act + " " + path + ": " + why.message());
}

// Overwrites nothing without `force`, not even a file written concurrently.
absl::Status Write(const InitFile& file, bool force) {
  const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | (force ? O_TRUNC : O_EXCL);
  const int fd = open(file.path.c_str(), flags, 0644);
  const auto last_error = [] { return std::error_code(errno, std::generic_category()); };
  if (fd < 0) return FailedTo("write", file.path, last_error());
  std::string_view left = file.content;
  const std::error_code error(base::WriteAll(fd, &left), std::generic_category());
  if (close(fd) != 0 && !error) return FailedTo("write", file.path, last_error());
  return error ? FailedTo("write", file.path, error) : absl::OkStatus();
}

absl::Status WriteAll(const CommandRun& run, const std::vector<InitFile>& files, bool force) {
  for (const InitFile& file : files) {
    const std::filesystem::path directory = std::filesystem::path(file.path).parent_path();
    std::error_code error;
    std::filesystem::create_directories(directory, error);
    if (error) return FailedTo("make the directory", directory, error);
    NH_RETURN_IF_ERROR(Write(file, force));
    run.out << "Wrote " << Printable(file.path) << "\n";
  }
  return absl::OkStatus();
}

bool NamesCluster(const config::StringMap& environment) {
  return !base::ValueOf(environment, "HARVESTER_KUBECONFIG").empty() ||
         !base::ValueOf(environment, "HARVESTER_URL").empty();
}

// Returns the kubeconfig that kubectl would use, unless the environment names the plugin's own.
std::string KubeconfigOf(const InitArguments& arguments, const config::StringMap& environment) {
  if (!arguments.kubeconfig.empty()) return arguments.kubeconfig;
  if (NamesCluster(environment)) return "";
  std::string of_kubectl = base::ValueOf(environment, "KUBECONFIG");
  if (!of_kubectl.empty()) return of_kubectl;
  const std::string usual = base::ValueOf(environment, "HOME") + "/.kube/config";
  std::error_code ignored;
  return std::filesystem::exists(usual, ignored) ? usual : "";
}

// Returns the namespaces of the chosen objects; a name without one has none.
std::set<std::string> SourcesOf(const InitArguments& arguments) {
  std::set<std::string> sources;
  for (const std::string* const name : {&arguments.image, &arguments.network, &arguments.ssh_key}) {
    const std::size_t slash = name->find('/');
    if (slash != std::string::npos) sources.insert(name->substr(0, slash));
  }
  if (sources.empty()) sources.insert(kSources);
  return sources;
}

int PrintRights(const InitArguments& arguments, const ErrorWriter& errors) {
  const std::string ns = arguments.ns.empty() ? kDefaultNamespace : arguments.ns;
  std::set<std::string> all = SourcesOf(arguments);
  all.insert(ns);
  for (const std::string& name : all) {
    if (base::IsDnsLabel(name)) continue;
    return errors.Refuse("\"" + Printable(name) + "\" cannot be the name of a namespace",
                         kExitUsage);
  }
  std::cout << RightsYaml(ns, SourcesOf(arguments));
  return kExitOk;
}

}  // namespace

int WriteInitFiles(const CommandRun& run, const InitArguments& arguments) {
  const absl::StatusOr<InitChoices> choices = ReadChoices(run, arguments);
  if (!choices.ok()) {
    if (run.context.Done())
      return run.errors.Refuse("interrupted; nothing was written", kExitFailure);
    const bool is_usage = absl::IsInvalidArgument(choices.status());
    return run.errors.Refuse(choices.status(), is_usage ? kExitUsage : kExitFailure);
  }
  if (const absl::Status written = WriteAll(run, InitFiles(*choices), arguments.force);
      !written.ok()) {
    return run.errors.Refuse(written, kExitFailure);
  }
  const std::string agent = Printable(choices->dir + "/agent.hcl");
  const std::string user_data = Printable(choices->dir + "/cloud-init.yaml");
  const std::string servers = Printable(NomadServersOf(*choices));
  run.out << "\nThe policy is a dry run. "
          << (servers.empty()
                  ? "Edit retry_join in " + user_data +
                        ", which is an example: set the addresses of your Nomad servers. Then:\n"
                  : "The VMs join Nomad at " + servers + " (retry_join in " + user_data +
                        "). Next:\n")
          << "  nomad-harvester check --agent-config " << agent << "\n"
          << "  nomad-autoscaler agent -config " << agent << "\n"
          << std::flush;
  return kExitOk;
}

void AddInitCommand(CLI::App& app, const Invocation& invocation) {
  const auto arguments = std::make_shared<InitArguments>();
  CLI::App* const command = app.add_subcommand("init",
                                               "Write a commented agent.hcl, a policy and user "
                                               "data for a cluster. Prompts for missing values "
                                               "and offers what exists. Nomad's address is that "
                                               "of NOMAD_ADDR.");
  command->footer(
      "Exit: 0 written, 1 Harvester cannot be read or a file exists, 2 usage, 130 interrupted.");
  const auto add = [command](const char* name, std::string& value, const char* description,
                             const char* type) {
    return command->add_option(name, value, description)->type_name(type);
  };
  add("--dir", arguments->dir, "Where to write", "DIR")->capture_default_str();
  add("--kubeconfig", arguments->kubeconfig,
      "The cluster; default: that of HARVESTER_KUBECONFIG or HARVESTER_URL, else kubectl's",
      "FILE");
  add("--pool", arguments->pool,
      "Name of the pool, and of its Nomad nodes' class; default: workers", "POOL");
  add("-n,--namespace", arguments->ns, "Namespace of the VMs; default: nomad", "NAMESPACE");
  add("--image", arguments->image, "Image of the VMs", "NAMESPACE/NAME");
  add("--network", arguments->network, "Network of the VMs, or management", "NAMESPACE/NAME");
  add("--ssh-key", arguments->ssh_key, "Key pair for the VMs, or none (the default)",
      "NAMESPACE/NAME");
  command->add_flag("--force", arguments->force, "Replace files that exist");
  command->add_flag("--rbac", arguments->rbac,
                    "Instead print a ServiceAccount with the plugin's rights, and its token, for "
                    "\"kubectl apply -f -\"");
  command->callback([arguments, invocation] {
    const ErrorWriter errors = invocation.Errors("init");
    if (arguments->rbac) {
      invocation.exit_code = PrintRights(*arguments, errors);
      return;
    }
    SettingArguments settings;
    settings.kubeconfig = KubeconfigOf(*arguments, invocation.environment);
    if (settings.kubeconfig.empty() && !NamesCluster(invocation.environment)) {
      invocation.exit_code = errors.Refuse(
          "no cluster is known: give --kubeconfig FILE, or set HARVESTER_KUBECONFIG, HARVESTER_URL "
          "or KUBECONFIG",
          kExitUsage);
      return;
    }
    invocation.exit_code = RunConnected(
        errors, settings, PolicyUse::kOptional, invocation.environment,
        [arguments](const CommandRun& run) { return WriteInitFiles(run, *arguments); });
  });
}

}  // namespace nomad_harvester::cli
