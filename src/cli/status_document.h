// SPDX-License-Identifier: Apache-2.0
// Builds the output of nomad-harvester status for programs. Private to module cli.
#ifndef NOMAD_HARVESTER_CLI_STATUS_DOCUMENT_H_
#define NOMAD_HARVESTER_CLI_STATUS_DOCUMENT_H_

#include <string>

#include "nlohmann/json_fwd.hpp"
#include "pool_status.h"

namespace nomad_harvester::cli {

// The members are documented in docs/commands.md. Other programs depend on them: members may be
// added, but none changes its name or meaning. Secrets are not removed yet.
nlohmann::ordered_json StatusDocument(const PoolStatus& status);
// The VM's element of `vms`, with its events, which are null if unknown.
nlohmann::ordered_json VmDocument(const VmStatus& vm, const scaling::EventsView& events);

// Everything shown, except for text that changes only with the clock.
std::string StateWithoutTimes(PoolStatus status, const scaling::EventsView& events = {});

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_STATUS_DOCUMENT_H_
