// SPDX-License-Identifier: Apache-2.0
// Routes the output of libraries and of std::terminate through the Logger, so that every line on
// stderr has our format (rule P3).
#ifndef NOMAD_HARVESTER_SRC_PLUGIN_LIBRARY_LOGS_H_
#define NOMAD_HARVESTER_SRC_PLUGIN_LIBRARY_LOGS_H_

#include "nomad_harvester/log/logger.h"

namespace nomad_harvester::plugin {

// Routes log lines of gRPC and protobuf to `logger`, and makes std::terminate log one line before
// it aborts. Applies to the whole process, permanently; a later call replaces the logger.
void RouteLibraryLogs(const log::Logger& logger);

}  // namespace nomad_harvester::plugin

#endif  // NOMAD_HARVESTER_SRC_PLUGIN_LIBRARY_LOGS_H_
