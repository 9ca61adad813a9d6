// SPDX-License-Identifier: Apache-2.0
// What harvester status knows of a pool, as data. Private to module cli.
#ifndef NOMAD_HARVESTER_CLI_STATUS_DOCUMENT_H_
#define NOMAD_HARVESTER_CLI_STATUS_DOCUMENT_H_

#include "nomad_harvester/scaling/maintenance.h"

#include "nlohmann/json.hpp"

namespace nomad_harvester::cli {

// The document of --output json and yaml. Other programs depend on its members: they may become
// more, and none changes its name or meaning. Nothing is said about nodes while Nomad cannot be
// read. In UTF-8; secrets are not removed yet.
nlohmann::ordered_json StatusDocument(const scaling::Inspection& inspection);
// Of a VM; null: they are not known.
nlohmann::ordered_json EventsDocument(const scaling::EventsView& events);

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_STATUS_DOCUMENT_H_
