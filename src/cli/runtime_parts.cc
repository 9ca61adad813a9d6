// SPDX-License-Identifier: Apache-2.0
#include "runtime_parts.h"

#include <array>
#include <fstream>
#include <unistd.h>
#include <utility>
#include <vector>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"

#include "absl/strings/str_split.h"
#include "version.h"

namespace nomad_harvester::cli {
namespace {

// Limits of threads, which are started when needed: concurrent requests of all calls, in addition
// to those sent by the calls' own threads; and pools with background work, each of which occupies a
// thread for as long as a drain takes (rule L8).
constexpr std::size_t kForegroundThreads = 128;
constexpr std::size_t kBackgroundThreads = 128;

std::string HostName() {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  return host.data();
}

std::string Holder(runtime::Random& random) {
  return HostName() + "_" + std::to_string(getpid()) + "_" + random.NextName(8);
}

runtime::WorkerPool::Options PoolOptions(std::size_t threads, const log::Logger& logger) {
  return {
      .threads = threads, .queue_limit = 1024, .on_exception = [logger](const std::string& what) {
        logger.Error("A background task threw an exception", {{"what", what}});
      }};
}

}  // namespace

std::optional<pid_t> ProcessOf(const std::string& holder) {
  const std::string host = HostName() + "_";
  if (!holder.starts_with(host)) return std::nullopt;
  const std::vector<std::string> parts = absl::StrSplit(holder.substr(host.size()), '_');
  const auto id = base::ParseInt(parts.front());
  if (parts.size() != 2 || !id.ok() || *id <= 1 || *id == getpid()) return std::nullopt;
  // A container with this machine's name has its own process numbers, so the number may belong to
  // another program here.
  std::string program;
  std::ifstream("/proc/" + std::to_string(*id) + "/comm") >> program;
  if (program.find(NOMAD_HARVESTER_PLUGIN_NAME) == std::string::npos) return std::nullopt;
  return static_cast<pid_t>(*id);
}

RuntimeParts::RuntimeParts(std::shared_ptr<log::Sink> sink, log::Level threshold,
                           const config::StringMap& environment)
    : threshold_(threshold),
      logger_(std::move(sink), threshold),
      environment_(environment),
      clock_(runtime::MakeSystemClock()),
      random_(runtime::MakeSystemRandom()),
      foreground_(PoolOptions(kForegroundThreads, logger_)),
      background_(PoolOptions(kBackgroundThreads, logger_)),
      metrics_({.clock = clock_.get(),
                .logger = logger_,
                .build = {.version = Version(), .commit = Commit()}}) {}

plugin::ProcessOptions RuntimeParts::Process() {
  return {.environment = environment_, .logger = logger_, .clock = clock_.get()};
}

std::unique_ptr<scaling::TargetService> RuntimeParts::MakeService(bool replaces) {
  scaling::ServiceOptions options;
  options.clock = clock_.get();
  options.random = random_;
  options.logger = logger_;
  options.environment = environment_;
  options.transports = scaling::MakeCurlTransports;
  options.foreground = &foreground_;
  options.background = &background_;
  options.holder = Holder(*random_);
  options.replaces = replaces;
  options.metrics_for = [this](const std::string& address) { return metrics_.Serve(address); };
  options.set_log_level = [this](std::optional<log::Level> level) { SetLogLevel(level); };
  return scaling::MakeTargetService(std::move(options));
}

std::unique_ptr<demand::DemandService> RuntimeParts::MakeDemandService() {
  demand::DemandServiceOptions options;
  options.clock = clock_.get();
  options.random = random_;
  options.logger = logger_;
  options.environment = environment_;
  options.executor = &foreground_;
  options.metrics_for = [this](const std::string& address) { return metrics_.Serve(address); };
  options.set_log_level = [this](std::optional<log::Level> level) { SetLogLevel(level); };
  return demand::MakeDemandService(std::move(options));
}

absl::StatusOr<DemandReaders> RuntimeParts::MakeReaders(const config::PluginConfig& config,
                                                        SystemWaits& waits,
                                                        std::vector<std::string>* warnings) {
  NH_ASSIGN_OR_RETURN(http::RawTransports made, demand::MakeCurlTransports(config));
  for (const std::vector<std::string>& texts :
       {config.warnings, config.missing_token_files, made.warnings}) {
    warnings->insert(warnings->end(), texts.begin(), texts.end());
  }
  http::RawTransports limited =
      waits.Limit({.harvester = made.harvester, .nomad = made.nomad}, config);
  DemandReaders readers;
  readers.nomad = std::make_unique<demand::Reader>(
      demand::MakeClient(config, std::move(limited.nomad), random_, logger_, nullptr), foreground_);
  if (made.harvester != nullptr) {
    readers.harvester = std::make_unique<demand::RoomReader>(demand::MakeHarvesterClient(
        config, std::move(limited.harvester), random_, logger_, nullptr));
  }
  return readers;
}

void RuntimeParts::SetLogLevel(std::optional<log::Level> level) {
  logger_.SetThreshold(level.value_or(threshold_));
}

scaling::MaintenanceOptions RuntimeParts::MakeMaintenance(const config::PluginConfig& config) {
  scaling::MaintenanceOptions options;
  options.clock = clock_.get();
  options.random = random_;
  options.logger = logger_;
  // Unless requested, the loop's log lines would repeat the command's output.
  if (const auto level = log::ParseLevel(config.log_level)) {
    logger_.SetThreshold(*level);
    options.loop_logger = logger_;
  }
  options.executor = &foreground_;
  options.holder = Holder(*random_);
  return options;
}

}  // namespace nomad_harvester::cli
