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

// c-ares 1.18, with which the static build resolves names, takes the ids of its queries from this
// device, and from rand(), which is not seeded, if it cannot open it (c-ares/c-ares:
// src/lib/ares_init.c, randomize_key). It knows neither getrandom nor arc4random.
inline constexpr char kRandomDevice[] = "/dev/urandom";
// Logs one WARN if the device cannot be opened.
void WarnWithoutRandomDevice(const log::Logger& logger, const char* device);

}  // namespace nomad_harvester::plugin

#endif  // NOMAD_HARVESTER_SRC_PLUGIN_LIBRARY_LOGS_H_
