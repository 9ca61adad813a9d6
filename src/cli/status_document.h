// SPDX-License-Identifier: Apache-2.0
// What nomad-harvester status prints for programs. Private to module cli.
#ifndef NOMAD_HARVESTER_CLI_STATUS_DOCUMENT_H_
#define NOMAD_HARVESTER_CLI_STATUS_DOCUMENT_H_

#include <string>

#include "nlohmann/json_fwd.hpp"
#include "pool_status.h"

namespace nomad_harvester::cli {

// The members are documented in docs/commands.md. Other programs depend on them: there may be
// more of them, and none changes its name or meaning. Secrets are not removed yet.
nlohmann::ordered_json StatusDocument(const PoolStatus& status);
// The VM's element of `vms`, and its events, which are null if they are not known.
nlohmann::ordered_json VmDocument(const VmStatus& vm, const scaling::EventsView& events);

// Everything that is shown, except for what changes with the clock alone.
std::string StateWithoutTimes(PoolStatus status, const scaling::EventsView& events = {});

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_STATUS_DOCUMENT_H_
