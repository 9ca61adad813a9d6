// SPDX-License-Identifier: Apache-2.0
// Every line on stderr is ours: libraries and last words go through the Logger (rule P3).
#ifndef NOMAD_HARVESTER_SRC_PLUGIN_LIBRARY_LOGS_H_
#define NOMAD_HARVESTER_SRC_PLUGIN_LIBRARY_LOGS_H_

#include "nomad_harvester/log/logger.h"

namespace nomad_harvester::plugin {

// Routes gRPC's and protobuf's own log lines to `logger`, and makes std::terminate write one line
// before it aborts. For the whole process and for ever; a later call replaces the logger.
void RouteLibraryLogs(const log::Logger& logger);

}  // namespace nomad_harvester::plugin

#endif  // NOMAD_HARVESTER_SRC_PLUGIN_LIBRARY_LOGS_H_
