// SPDX-License-Identifier: Apache-2.0
// Answers the queries of the Nomad Autoscaler's agent: the APM in this executable.
#ifndef NOMAD_HARVESTER_DEMAND_SERVICE_H_
#define NOMAD_HARVESTER_DEMAND_SERVICE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nomad_harvester/base/time.h"
#include "nomad_harvester/config/plugin_config.h"
#include "nomad_harvester/http/connection_parts.h"
#include "nomad_harvester/kube/client.h"
#include "nomad_harvester/log/logger.h"
#include "nomad_harvester/metrics/sink.h"
#include "nomad_harvester/nomad/client.h"
#include "nomad_harvester/runtime/clock.h"
#include "nomad_harvester/runtime/context.h"
#include "nomad_harvester/runtime/random.h"
#include "nomad_harvester/runtime/workers.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace nomad_harvester::demand {

struct Answer {
  std::int64_t count = 0;  // with idle_for
  base::WallTime at{};     // when Nomad was read, or Harvester for the room
};

// Thread-safe. SetConfig and Query may be called concurrently; calls keep the configuration with
// which they began.
class DemandService {
 public:
  virtual ~DemandService() = default;
  // The operator's apm block and the agent's own Nomad settings, one map. Sends no request.
  // INVALID_ARGUMENT lists every problem, one per line.
  virtual absl::Status SetConfig(const config::StringMap& settings) = 0;
  // Blocks for the requests, half a minute at most: all queries within kReadingIsKept share one
  // reading of Nomad. INVALID_ARGUMENT: the query. FAILED_PRECONDITION: before the first SetConfig,
  // or as NeedsOf. Any other error: Nomad or Harvester cannot be read, or a list is incomplete;
  // there is then no number.
  virtual absl::StatusOr<Answer> Query(const runtime::Context& context,
                                       const std::string& query) = 0;
  // Later calls return CANCELLED. Those in progress end with their contexts.
  virtual void Stop() = 0;
};

// The production factory: libcurl. INVALID_ARGUMENT lists every problem. Opens no connection.
absl::StatusOr<http::RawTransports> MakeCurlTransports(const config::PluginConfig& config);

// A client with retries, limits, log and metrics, for Reader. `sink` may be null.
std::shared_ptr<const nomad::NomadClient> MakeClient(const config::PluginConfig& config,
                                                     std::shared_ptr<http::HttpTransport> transport,
                                                     const std::shared_ptr<runtime::Random>& random,
                                                     const log::Logger& logger,
                                                     const std::shared_ptr<metrics::Sink>& sink);
// Likewise for RoomReader. Null if the transport is.
std::shared_ptr<const kube::KubeClient> MakeHarvesterClient(
    const config::PluginConfig& config, std::shared_ptr<http::HttpTransport> transport,
    const std::shared_ptr<runtime::Random>& random, const log::Logger& logger,
    const std::shared_ptr<metrics::Sink>& sink);

struct DemandServiceOptions {
  runtime::Clock* clock = nullptr;  // outlives the service
  std::shared_ptr<runtime::Random> random;
  log::Logger logger;
  config::StringMap environment;  // the whole one
  std::function<absl::StatusOr<http::RawTransports>(const config::PluginConfig& config)>
      transports = MakeCurlTransports;
  runtime::Executor* executor = nullptr;  // for requests side by side; outlives the service
  // As in scaling::ServiceOptions; both may be null.
  std::function<void(std::optional<log::Level>)> set_log_level;
  std::function<std::shared_ptr<metrics::Sink>(const std::string& address)> metrics_for;
};

std::unique_ptr<DemandService> MakeDemandService(DemandServiceOptions options);

}  // namespace nomad_harvester::demand

#endif  // NOMAD_HARVESTER_DEMAND_SERVICE_H_
