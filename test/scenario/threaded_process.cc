// SPDX-License-Identifier: Apache-2.0
#include "threaded_process.h"

#include <chrono>
#include <stdexcept>
#include <utility>

#include "support/seeded_random.h"

namespace nomad_harvester::scenario {
namespace {

runtime::WorkerPool::Options ThreadsOf(std::size_t count, const log::Logger& logger) {
  return {.threads = count, .queue_limit = 1024, .on_exception = [logger](const std::string& what) {
            logger.Error("A background task threw an exception", {{"what", what}});
          }};
}

}  // namespace

ThreadedProcess::ThreadedProcess(runtime::Clock& clock, Options given)
    : clock_(clock),
      config_(std::move(given.config)),
      foreground_(ThreadsOf(given.foreground, log::Logger(given.sink, log::Level::kInfo))),
      background_(ThreadsOf(given.background, log::Logger(given.sink, log::Level::kInfo))) {
  scaling::ServiceOptions options;
  options.clock = &clock_;
  options.random = support::MakeSeededRandom(std::hash<std::string>()(given.name));
  options.logger = log::Logger(std::move(given.sink), log::Level::kInfo);
  options.transports = std::move(given.transports);
  options.foreground = &foreground_;
  options.background = &background_;
  options.holder = std::move(given.name);
  service_ = scaling::MakeTargetService(std::move(options));
  Configure();
}

void ThreadedProcess::Configure(const scaling::StringMap& more) {
  scaling::StringMap values = more;
  values.insert(config_.begin(), config_.end());
  values.insert({{"harvester_url", "https://harvester.invalid"}, {"auth_token", "token"}});
  values.insert({"events", "false"});
  const absl::Status configured = service_->SetConfig(values);
  if (!configured.ok()) throw std::logic_error(configured.ToString());
}

absl::StatusOr<scaling::TargetStatus> ThreadedProcess::Status(const scaling::StringMap& policy) {
  return service_->Status(background().WithTimeout(std::chrono::seconds(7)), policy);
}

absl::Status ThreadedProcess::Scale(const runtime::Context& context, std::int64_t count,
                                    const scaling::StringMap& policy) {
  return service_->Scale(context, {.count = count, .reason = "test"}, policy);
}

void ThreadedProcess::Stop(base::Duration limit) {
  service_->Stop(background().WithTimeout(limit));
}

}  // namespace nomad_harvester::scenario
