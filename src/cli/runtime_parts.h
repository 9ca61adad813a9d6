// SPDX-License-Identifier: Apache-2.0
// The real clock, randomness and threads used by a service. Private to module cli.
#ifndef NOMAD_HARVESTER_CLI_RUNTIME_PARTS_H_
#define NOMAD_HARVESTER_CLI_RUNTIME_PARTS_H_

#include <memory>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

#include "nomad_harvester/config/plugin_config.h"
#include "nomad_harvester/demand/reader.h"
#include "nomad_harvester/demand/room_reader.h"
#include "nomad_harvester/demand/service.h"
#include "nomad_harvester/http/metrics_endpoint.h"
#include "nomad_harvester/log/logger.h"
#include "nomad_harvester/plugin/plugin_process.h"
#include "nomad_harvester/runtime/clock.h"
#include "nomad_harvester/runtime/random.h"
#include "nomad_harvester/runtime/workers.h"
#include "nomad_harvester/scaling/maintenance.h"
#include "nomad_harvester/scaling/service.h"

#include "absl/status/statusor.h"
#include "system_waits.h"

namespace nomad_harvester::cli {

// The process that took a Lease under this name: another one of this program, on this machine.
std::optional<pid_t> ProcessOf(const std::string& holder);

// They read what an apm block reads.
struct DemandReaders {
  std::unique_ptr<demand::Reader> nomad;
  std::unique_ptr<demand::RoomReader> harvester;  // null: there is no connection
};

// Owns everything that a service needs; must outlive it.
class RuntimeParts {
 public:
  RuntimeParts(std::shared_ptr<log::Sink> sink, log::Level threshold,
               const config::StringMap& environment);

  const log::Logger& logger() const { return logger_; }
  runtime::Clock& clock() { return *clock_; }
  std::shared_ptr<runtime::Random> random() const { return random_; }
  // Returns the options of the plugin's process that the service does not need.
  plugin::ProcessOptions Process();
  // A service that uses both systems over libcurl. `replaces`: as in ServiceOptions.
  std::unique_ptr<scaling::TargetService> MakeService(bool replaces = true);
  // An APM that reads Nomad over libcurl.
  std::unique_ptr<demand::DemandService> MakeDemandService();
  // For a command with this configuration, which gives up systems by `waits`; adds warnings for
  // people.
  absl::StatusOr<DemandReaders> MakeReaders(const config::PluginConfig& config, SystemWaits& waits,
                                            std::vector<std::string>* warnings);
  // For a maintenance command with this configuration; applies its log_level.
  scaling::MaintenanceOptions MakeMaintenance(const config::PluginConfig& config);

 private:
  void SetLogLevel(std::optional<log::Level> level);

  const log::Level threshold_;  // without log_level
  const log::Logger logger_;
  const config::StringMap environment_;
  const std::unique_ptr<runtime::Clock> clock_;
  const std::shared_ptr<runtime::Random> random_;
  runtime::WorkerPool foreground_;
  runtime::WorkerPool background_;
  http::MetricsEndpoint metrics_;
};

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_RUNTIME_PARTS_H_
