// SPDX-License-Identifier: Apache-2.0
// harvester gc: collects what an interrupted action left behind. Private to module cli.
#ifndef NOMAD_HARVESTER_CLI_GC_COMMAND_H_
#define NOMAD_HARVESTER_CLI_GC_COMMAND_H_

#include <iosfwd>
#include <string>
#include <vector>

#include "nomad_harvester/scaling/maintenance.h"

#include "settings.h"

namespace CLI {
class App;
}

namespace nomad_harvester::cli {

struct GcArguments {
  std::vector<std::string> settings;
  bool dry_run = false;
};

// The subcommand's options; owned by `app`.
CLI::App* AddGcCommand(CLI::App& app, GcArguments* arguments);

// 0: everything is clean. 1: something was not done, and is printed. 2: usage.
int RunGc(const GcArguments& arguments, const config::StringMap& environment);

// The same with the dependencies given. Prints a line to `out` for each thing done, and to `err`
// for each thing not done.
int CollectGarbage(const scaling::Maintenance& maintenance, const runtime::Context& context,
                   const Settings& settings, bool dry_run, std::ostream& out, std::ostream& err);

// "web-a: deleted the VM: it never joined Nomad"; dry run: "web-a: would delete the VM: …".
std::string EventLine(const scaling::ReconcileEvent& event, bool dry_run);

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_GC_COMMAND_H_
