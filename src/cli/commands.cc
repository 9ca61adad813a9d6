// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/cli/commands.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <memory>

#include <CLI/CLI.hpp>

#include "nomad_harvester/log/sinks.h"
#include "nomad_harvester/plugin/host_contract.h"
#include "nomad_harvester/plugin/plugin_process.h"

#include "dev_command.h"
#include "gc_command.h"
#include "pause_command.h"
#include "runtime_parts.h"
#include "status_command.h"
#include "version.h"

namespace nomad_harvester::cli {
namespace {

constexpr char kSentence[] =
    "harvester is the Harvester target plugin of the Nomad Autoscaler: put it into the agent's "
    "plugin_dir and name it as driver of a target block, or run \"harvester dev --simulate\" to "
    "try it, \"harvester --help\" for its commands.\n";

// Threads inherit the mask, so SIGTERM and SIGINT reach only the one thread that waits for them.
void PrepareSignals() {
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &mask, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
}

int RunAsPlugin(const config::StringMap& environment) {
  // The agent filters by its own level; the configuration's log_level may raise ours.
  RuntimeParts parts(log::MakeHclogSink(NOMAD_HARVESTER_PLUGIN_NAME), log::Level::kDebug,
                     environment);
  const auto service = parts.MakeService();
  return plugin::RunPlugin(*service, parts.Process());
}

}  // namespace

int Main(const std::vector<std::string>& arguments, const config::StringMap& environment) {
  PrepareSignals();
  if (plugin::StartedByHost(LookUpIn(environment))) return RunAsPlugin(environment);
  if (arguments.empty()) {
    std::cerr << kSentence;
    return 1;
  }

  CLI::App app("The Harvester target plugin of the Nomad Autoscaler.", NOMAD_HARVESTER_PLUGIN_NAME);
  app.require_subcommand(1);
  DevArguments dev;
  CLI::App* dev_command = AddDevCommand(app, &dev);
  StatusArguments status;
  CLI::App* status_command = AddStatusCommand(app, &status);
  GcArguments gc;
  CLI::App* gc_command = AddGcCommand(app, &gc);
  PauseArguments pause;
  CLI::App* pause_command = AddPauseCommand(app, &pause);
  PauseArguments resume;
  CLI::App* resume_command = AddResumeCommand(app, &resume);
  CLI::App* version_command = app.add_subcommand("version", "Print version, commit and libraries");
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::ParseError& error) {
    const bool asked_for_help = error.get_exit_code() == 0;
    app.exit(error);
    return asked_for_help ? 0 : 2;
  }
  if (version_command->parsed()) {
    std::cout << VersionText();
    return 0;
  }
  if (dev_command->parsed()) return RunDev(dev, environment);
  if (status_command->parsed()) return RunStatus(status, environment);
  if (gc_command->parsed()) return RunGc(gc, environment);
  if (pause_command->parsed()) return RunPause(pause, environment);
  if (resume_command->parsed()) return RunResume(resume, environment);
  return 2;
}

}  // namespace nomad_harvester::cli
