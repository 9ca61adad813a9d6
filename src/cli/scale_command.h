// SPDX-License-Identifier: Apache-2.0
// Implements nomad-harvester scale, given its dependencies. Private to module cli.
#ifndef NOMAD_HARVESTER_CLI_SCALE_COMMAND_H_
#define NOMAD_HARVESTER_CLI_SCALE_COMMAND_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "nomad_harvester/log/logger.h"
#include "nomad_harvester/scaling/target_service.h"

#include "command.h"

namespace nomad_harvester::cli {

struct ScaleArguments {
  std::int64_t count = 0;
  std::string output = kForPeople;
  bool yes = false;      // remove VMs without asking
  bool no_wait = false;  // return once it is accepted
};

// Makes the plugin's service, not yet configured, whose log goes to `progress`. Called at most
// once.
using MakeService = std::function<std::unique_ptr<scaling::TargetService>(
    const std::shared_ptr<log::Sink>& progress)>;

// 0: done or, with no_wait, accepted. 1: not or partly done. 2: CheckCountOf failed, or VMs would
// be removed and nobody can be asked.
int ScalePool(const CommandRun& run, const ScaleArguments& arguments,
              const MakeService& make_service);

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_SCALE_COMMAND_H_
