// SPDX-License-Identifier: Apache-2.0
// One process of the plugin with its threads, below gRPC: for tests of what happens at once.
#ifndef NOMAD_HARVESTER_TEST_SCENARIO_THREADED_PROCESS_H_
#define NOMAD_HARVESTER_TEST_SCENARIO_THREADED_PROCESS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "nomad_harvester/log/sinks.h"
#include "nomad_harvester/runtime/context.h"
#include "nomad_harvester/runtime/workers.h"
#include "nomad_harvester/scaling/service.h"

namespace nomad_harvester::scenario {

class ThreadedProcess {
 public:
  struct Options {
    std::string name;  // as the Leases' holder
    scaling::TransportFactory transports;
    std::shared_ptr<log::Sink> sink;
    // As many as the executable has (src/cli/runtime_parts.cc).
    std::size_t foreground = 128;
    std::size_t background = 128;
    scaling::StringMap config{};  // keys of the plugin block
  };
  ThreadedProcess(runtime::Clock& clock, Options options);

  // The agent reloads, with these keys besides those of the options. Throws if it is refused.
  void Configure(const scaling::StringMap& more = {});
  // Within the seven seconds that the agent waits.
  absl::StatusOr<scaling::TargetStatus> Status(const scaling::StringMap& policy);
  absl::Status Scale(const runtime::Context& context, std::int64_t count,
                     const scaling::StringMap& policy);
  // Calls it within `limit`, and returns when it has returned.
  void Stop(base::Duration limit);

  runtime::Context background() const { return runtime::Context::Background(clock_); }

 private:
  runtime::Clock& clock_;
  const scaling::StringMap config_;
  runtime::WorkerPool foreground_;
  runtime::WorkerPool background_;
  std::unique_ptr<scaling::TargetService> service_;
};

}  // namespace nomad_harvester::scenario

#endif  // NOMAD_HARVESTER_TEST_SCENARIO_THREADED_PROCESS_H_
