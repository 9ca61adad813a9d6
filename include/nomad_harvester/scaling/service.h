// SPDX-License-Identifier: Apache-2.0
// Implements TargetService for Harvester and Nomad, real or simulated.
#ifndef NOMAD_HARVESTER_SCALING_SERVICE_H_
#define NOMAD_HARVESTER_SCALING_SERVICE_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "nomad_harvester/config/plugin_config.h"
#include "nomad_harvester/log/logger.h"
#include "nomad_harvester/metrics/sink.h"
#include "nomad_harvester/runtime/random.h"
#include "nomad_harvester/runtime/workers.h"
#include "nomad_harvester/scaling/clients.h"
#include "nomad_harvester/scaling/target_service.h"

namespace nomad_harvester::scaling {

// Log message, with `holder` and `until`, for a call that waits for the Lease of a process that no
// longer renews it.
inline constexpr char kWaitsForLease[] = "Waiting for the Lease of a stopped process";

struct ServiceOptions {
  runtime::Clock* clock = nullptr;  // outlives the service
  std::shared_ptr<runtime::Random> random;
  log::Logger logger;
  config::StringMap environment;  // the whole one
  TransportFactory transports;
  // `foreground` spreads the work of one call over threads. `background` runs resumptions and sends
  // Kubernetes Events. They must be different executors, because a resumption occupies its thread
  // for as long as a drain takes. Both outlive the service.
  runtime::Executor* foreground = nullptr;
  runtime::Executor* background = nullptr;
  // Called by SetConfig with log_level; nullopt if it is not set. May be null.
  std::function<void(std::optional<log::Level>)> set_log_level;
  // Called by each SetConfig with metrics_address, even if that is empty. Returns the sink for the
  // metrics (rule T2), or null. Does not block. May be null.
  std::function<std::shared_ptr<metrics::Sink>(const std::string& address)> metrics_for;
  // Identifies this process on the pool's Lease; unique: host, pid, random.
  std::string holder;
  // False: the background begins no replacement, as in a command, which is no agent.
  bool replaces = true;
};

std::unique_ptr<TargetService> MakeTargetService(ServiceOptions options);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_SERVICE_H_
