// SPDX-License-Identifier: Apache-2.0
// What completion scripts ask: the names of policies and of VMs.
#include <chrono>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "agent_files.h"
#include "command.h"
#include "text.h"

namespace nomad_harvester::cli {
namespace {

// Somebody has pressed the tab key.
constexpr base::Duration kNamesWithin = std::chrono::seconds(3);

// The settings in the words of an unfinished command, whatever else is among them. bash has "=" as
// a word of its own.
SettingArguments ArgumentsOf(const std::vector<std::string>& words) {
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
  SettingArguments arguments;
  for (std::size_t i = 0; i < joined.size(); ++i) {
    const std::size_t equals = joined[i].find('=');
    const std::string name = joined[i].substr(0, equals);
    const bool has_value = equals != std::string::npos;
    if (!has_value && i + 1 == joined.size()) break;
    const std::string value = has_value ? joined[i].substr(equals + 1) : joined[i + 1];
    if (name == "--agent-config") arguments.files.agent_config = value;
    if (name == "--policy") arguments.files.policy = value;
    if (name == "--policy-name") arguments.files.policy_name = value;
    if (name == "--set") arguments.pairs.push_back(value);
    if (name == "-n" || name == "--namespace") arguments.ns = value;
    if (name == "--kubeconfig") arguments.kubeconfig = value;
  }
  return arguments;
}

int PrintPolicies(const OperatorFiles& files, const ErrorWriter& errors) {
  std::string path = files.policy;
  if (path.empty() && !files.agent_config.empty()) {
    const auto agent = ReadAgentConfig(files.agent_config);
    if (!agent.ok()) return errors.Refuse(agent.status(), kExitUsage);
    path = agent->policy_dir;
  }
  if (path.empty()) return kExitOk;
  const auto policies = ReadPolicies(path);
  if (!policies.ok()) return errors.Refuse(policies.status(), kExitUsage);
  for (const FilePolicy& policy : policies->policies) std::cout << Printable(policy.name) << "\n";
  return kExitOk;
}

int PrintVms(const CommandRun& run) {
  const auto seen = run.maintenance.Inspect(run.context.WithTimeout(kNamesWithin),
                                            *run.settings.policy, /*tells_vms=*/false);
  if (!seen.ok()) return run.errors.Refuse(seen.status(), kExitFailure);
  for (const scaling::VmView* const view : seen->snapshot.vms()) {
    run.out << Printable(view->vm->name) << "\n";
  }
  return kExitOk;
}

}  // namespace

void AddNamesCommand(CLI::App& app, const Invocation& invocation) {
  const auto kind = std::make_shared<std::string>();
  const auto words = std::make_shared<std::vector<std::string>>();
  CLI::App* const command = app.add_subcommand(kNamesCommand, "Print names, for completion");
  command->group("");  // no help names it
  command->add_option("KIND", *kind)->required()->check(CLI::IsMember({"policies", "vms"}));
  command->add_option("WORDS", *words);
  command->callback([kind, words, invocation] {
    const ErrorWriter errors = invocation.Errors(kNamesCommand);
    const SettingArguments arguments = ArgumentsOf(*words);
    invocation.exit_code = *kind == "policies" ? PrintPolicies(arguments.files, errors)
                                               : RunConnected(errors, arguments, PolicyUse::kPool,
                                                              invocation.environment, PrintVms);
  });
}

}  // namespace nomad_harvester::cli
