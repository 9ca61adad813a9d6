// SPDX-License-Identifier: Apache-2.0
// A target service that follows the instructions in its config maps.
#ifndef NOMAD_HARVESTER_TEST_PLUGIN_FAKE_SERVICE_H_
#define NOMAD_HARVESTER_TEST_PLUGIN_FAKE_SERVICE_H_

#include <atomic>
#include <string>

#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/log/logger.h"
#include "nomad_harvester/scaling/target_service.h"

namespace nomad_harvester::plugin {

// The key "do" of the config map, in all three calls:
//   ok (or absent)  succeeds
//   fail            the status with the code number in "code" and the text in "message" (repeated
//                   "repeat" times)
//   block           waits until the context ends, and returns its status
//   stubborn        blocks until Release, ignoring the context
//   throw           throws a std::runtime_error with "message"
//   throw-other     throws something that is not a std::exception
//   terminate       ends the process by std::terminate
//   log             logs one line for each level, with the field level_name
// A successful Status is ready; its count is the number of Scale calls that have begun, and its
// meta has last_count, last_reason, last_meta (of the latest Scale), stopped, remaining_ms, config
// (the key "echo" of the last SetConfig) and, with "do" = "echo", the policy itself.
class FakeService final : public scaling::TargetService {
 public:
  explicit FakeService(log::Logger logger) : logger_(std::move(logger)) {}

  absl::Status SetConfig(const scaling::StringMap& config) override;
  absl::StatusOr<scaling::TargetStatus> Status(const runtime::Context& context,
                                               const scaling::StringMap& policy) override;
  absl::Status Scale(const runtime::Context& context, const scaling::ScaleAction& action,
                     const scaling::StringMap& policy) override;
  void Flush(const runtime::Context& context) override;
  void Stop(const runtime::Context& context) override;

  int scales_begun() const { return scales_begun_; }
  int statuses_begun() const { return statuses_begun_; }
  int stops() const { return stops_; }
  // Why the latest call that blocked was cancelled.
  runtime::CancelReason last_cancel() const { return last_cancel_; }
  // Ends all stubborn calls.
  void Release();

 private:
  absl::Status Do(const runtime::Context& context, const scaling::StringMap& script);
  void LogAllLevels() const;

  const log::Logger logger_;
  std::atomic<int> scales_begun_{0};
  std::atomic<int> statuses_begun_{0};
  std::atomic<int> stops_{0};
  std::atomic<runtime::CancelReason> last_cancel_{runtime::CancelReason::kNone};
  base::Mutex mutex_;
  base::CondVar wake_;
  bool released_ NH_GUARDED_BY(mutex_) = false;
  scaling::ScaleAction last_action_ NH_GUARDED_BY(mutex_);
  std::string config_echo_ NH_GUARDED_BY(mutex_);
};

}  // namespace nomad_harvester::plugin

#endif  // NOMAD_HARVESTER_TEST_PLUGIN_FAKE_SERVICE_H_
