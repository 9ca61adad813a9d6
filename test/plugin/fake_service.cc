// SPDX-License-Identifier: Apache-2.0
#include "plugin/fake_service.h"

#include <chrono>
#include <exception>
#include <stdexcept>
#include <string>

#include "nomad_harvester/base/status.h"

namespace nomad_harvester::plugin {
namespace {

std::string Get(const scaling::StringMap& map, const std::string& key, std::string fallback = "") {
  const auto found = map.find(key);
  return found == map.end() ? std::move(fallback) : found->second;
}

std::string Message(const scaling::StringMap& script) {
  const std::string once = Get(script, "message", "scripted");
  std::string result;
  for (int i = std::stoi(Get(script, "repeat", "1")); i > 0; --i) result += once;
  return result;
}

}  // namespace

void FakeService::LogAllLevels() const {
  for (const log::Level level : {log::Level::kTrace, log::Level::kDebug, log::Level::kInfo,
                                 log::Level::kWarn, log::Level::kError}) {
    logger_.Log(level, "scripted line", {{"level_name", log::LevelName(level)}});
  }
}

absl::Status FakeService::Do(const runtime::Context& context, const scaling::StringMap& script) {
  const std::string what = Get(script, "do", "ok");
  if (what == "fail") {
    return base::MakeStatus(static_cast<absl::StatusCode>(std::stoi(Get(script, "code", "13"))),
                            Message(script));
  }
  if (what == "block") {
    const absl::Status status = context.Sleep(std::chrono::hours(1));
    last_cancel_ = context.cancel_reason();
    return status;
  }
  if (what == "stubborn") {
    base::MutexLock lock(mutex_);
    wake_.Wait(mutex_, [this]() NH_REQUIRES(mutex_) { return released_; });
    return base::Internal("released");
  }
  if (what == "throw") throw std::runtime_error(Message(script));
  if (what == "throw-other") throw 42;
  if (what == "terminate") std::terminate();
  if (what == "log") LogAllLevels();
  return absl::OkStatus();
}

absl::Status FakeService::SetConfig(const scaling::StringMap& config) {
  {
    base::MutexLock lock(mutex_);
    config_echo_ = Get(config, "echo");
  }
  const std::unique_ptr<runtime::Clock> clock = runtime::MakeSystemClock();
  return Do(runtime::Context::Background(*clock), config);
}

absl::StatusOr<scaling::TargetStatus> FakeService::Status(const runtime::Context& context,
                                                          const scaling::StringMap& policy) {
  ++statuses_begun_;
  NH_RETURN_IF_ERROR(Do(context, policy));
  scaling::TargetStatus status;
  if (Get(policy, "do") == "echo") status.meta = policy;
  status.ready = true;
  status.count = scales_begun_;
  status.meta["stopped"] = std::to_string(stops_);
  if (context.deadline().has_value()) {
    status.meta["remaining_ms"] = std::to_string(
        std::chrono::duration_cast<std::chrono::milliseconds>(context.Remaining()).count());
  }
  base::MutexLock lock(mutex_);
  status.meta["config"] = config_echo_;
  status.meta["last_count"] = std::to_string(last_action_.count);
  status.meta["last_reason"] = last_action_.reason;
  status.meta["last_meta"] = last_action_.meta_json;
  return status;
}

absl::Status FakeService::Scale(const runtime::Context& context, const scaling::ScaleAction& action,
                                const scaling::StringMap& policy) {
  {
    base::MutexLock lock(mutex_);
    last_action_ = action;
  }
  ++scales_begun_;
  return Do(context, policy);
}

void FakeService::Flush(const runtime::Context&) {}

void FakeService::Stop(const runtime::Context&) { ++stops_; }

void FakeService::Release() {
  base::MutexLock lock(mutex_);
  released_ = true;
  wake_.NotifyAll();
}

}  // namespace nomad_harvester::plugin
