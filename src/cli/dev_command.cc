// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/log/sinks.h"
#include "nomad_harvester/plugin/plugin_process.h"

#include "command.h"
#include "runtime_parts.h"
#include "settings.h"
#include "simulated_world.h"
#include "text.h"

namespace nomad_harvester::cli {
namespace {

// For scripts: prints one key and one value per line to standard output.
void Announce(const std::string& key, const std::string& value) {
  std::cout << key << " " << value
            << std::endl;  // NOLINT(performance-avoid-endl): read through a pipe
}

struct DevArguments {
  std::string listen;
  bool simulate = false;
  SimulatedFault fault;
  OperatorFiles files;  // only agent_config
  std::vector<std::string> settings;
};

// Prints lines to paste into another terminal. zsh splits variables into words only if told to. An
// agent's files on this machine would name another Nomad.
void AnnounceCommands(const SimulatedWorld& world) {
  const config::StringMap config = world.Config();
  std::cout
      << "\nPaste the lines below into another terminal. There the agent's files are not read, "
         "and the pool\nis named by $POOL, not by the label of a policy.\n\n"
         "[ -z \"$ZSH_VERSION\" ] || setopt sh_word_split\n"
         "export NOMAD_HARVESTER_AGENT_CONFIG= HARVESTER_URL="
      << config.at("harvester_url") << " HARVESTER_TOKEN=" << config.at("auth_token")
      << " NOMAD_ADDR=" << config.at("nomad_address") << " NOMAD_TOKEN=" << config.at("nomad_token")
      << "\nPOOL=\"" << world.PoolSettings() << "\"\n"
      << "nomad-harvester check $POOL\n"
         "nomad-harvester scale --count 3 $POOL\n"
         "nomad-harvester status $POOL\n"
      << "kubectl --server " << world.harvester_url() << " --namespace nomad get vm"
      << std::endl;  // NOLINT(performance-avoid-endl): read through a pipe
}

int Serve(scaling::TargetService& service, RuntimeParts& parts, const DevArguments& arguments,
          const SimulatedWorld* world = nullptr) {
  plugin::DevOptions dev;
  dev.listen = arguments.listen;
  dev.on_listening = [world](const std::string& address) {
    Announce("listening", address);
    if (world != nullptr) AnnounceCommands(*world);
  };
  return plugin::RunDev(service, parts.Process(), dev);
}

int RunSimulated(const DevArguments& arguments, const config::StringMap& environment,
                 const ErrorWriter& errors) {
  RuntimeParts parts(log::MakePlainSink(), log::Level::kInfo, SimulatedWorld::Shield(environment));
  SimulatedFault fault = arguments.fault;
  fault.report = [&parts](const std::string& text) {
    parts.logger().Info("--kill-after", {{"result", text}});
  };
  // Declared before the service, which uses it until the service is destroyed.
  SimulatedWorld world(fault);
  absl::Status ready = world.Start();
  const auto service = parts.MakeService();
  if (ready.ok()) ready = service->SetConfig(world.Config());
  if (!ready.ok()) return errors.Refuse(ready, kExitFailure);
  Announce("harvester_url", world.harvester_url());
  Announce("nomad_address", world.nomad_address());
  return Serve(*service, parts, arguments, &world);
}

int RunReal(const DevArguments& arguments, const config::StringMap& environment,
            const ErrorWriter& errors) {
  const auto files = ReadOperatorFiles(FindAgentFiles(arguments.files, environment));
  if (!files.ok()) return errors.Refuse(files.status(), kExitUsage);
  NoteFound(*files, errors);
  const absl::StatusOr<PluginSettings> given =
      ReadPluginSettings(arguments.settings, *files, environment);
  if (!given.ok()) return errors.Refuse(given.status(), kExitUsage);
  RuntimeParts parts(log::MakePlainSink(), log::Level::kInfo, given->environment);
  for (const std::string& warning : given->warnings) parts.logger().Warn(warning);
  const auto service = parts.MakeService();
  if (const absl::Status configured = service->SetConfig(given->block); !configured.ok()) {
    // On TCP no client may configure it later.
    const bool on_tcp = !arguments.listen.empty() && !arguments.listen.starts_with("unix:");
    if (on_tcp || !given->block.empty()) {
      return errors.Refuse(WithOrigins(base::Message(configured), given->origins), kExitUsage);
    }
    parts.logger().Warn("Not configured by the environment; call SetConfig first",
                        {{"error", configured}});
  }
  return Serve(*service, parts, arguments);
}

}  // namespace

void AddDevCommand(CLI::App& app, const Invocation& invocation) {
  const auto arguments = std::make_shared<DevArguments>();
  CLI::App* command = app.add_subcommand("dev",
                                         "Run the plugin without the agent: for a first look "
                                         "(--simulate), and for debugging");
  command->footer("Exit: 0 stopped, 1 it cannot serve, 2 usage.");
  command
      ->add_option("--listen", arguments->listen,
                   "unix:/path, or 127.0.0.1:PORT, where any user of this machine may call and "
                   "SetConfig is refused; default: a Unix socket in a new private directory")
      ->type_name("ADDRESS");
  CLI::Option* const simulate =
      command->add_flag("--simulate", arguments->simulate,
                        "Start a simulated Harvester and Nomad, and configure the plugin for them");
  command
      ->add_option("--fail", arguments->fault.failure,
                   "What fails there: no VM joins Nomad, no VM fits the quota, no host takes a VM, "
                   "no work stops for a drain, or the image is not imported")
      ->check(CLI::IsMember(std::vector<std::string>(std::begin(kFailures), std::end(kFailures))))
      ->needs(simulate);
  command
      ->add_option("--kill-after", arguments->fault.kill_after,
                   "kill -9, once, the command or plugin that holds a pool's Lease when it sends "
                   "its Nth write, counted from the start of the simulation")
      ->type_name("N")
      ->check([](const std::string& text) {
        const auto number = base::ParseInt(text);
        if (number.ok() && *number > 0) return std::string();
        return "must be a whole number from 1, such as 5" + Got(text);
      })
      ->needs(simulate);
  AddAgentConfigOption(*command, arguments->files)->excludes(simulate);
  AddSetOption(*command, arguments->settings, "KEY=VALUE of the plugin's block; repeatable")
      ->excludes(simulate);
  command->callback([arguments, invocation] {
    const ErrorWriter errors = invocation.Errors("dev");
    if (const absl::Status address = plugin::CheckDevAddress(arguments->listen); !address.ok()) {
      invocation.exit_code = errors.Refuse(base::Annotate(address, "--listen"), kExitUsage);
      return;
    }
    const auto run = arguments->simulate ? RunSimulated : RunReal;
    invocation.exit_code = run(*arguments, invocation.environment, errors);
  });
}

}  // namespace nomad_harvester::cli
