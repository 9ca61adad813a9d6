// SPDX-License-Identifier: Apache-2.0
// The wish that the process end, from wherever it comes.
#ifndef NOMAD_HARVESTER_SRC_PLUGIN_STOP_REQUEST_H_
#define NOMAD_HARVESTER_SRC_PLUGIN_STOP_REQUEST_H_

#include <atomic>
#include <initializer_list>
#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "host_watch.h"

namespace nomad_harvester::plugin {

// A flag that can be waited for. Thread-safe.
class StopRequest {
 public:
  // RESOURCE_EXHAUSTED if the process may have no more file descriptors.
  static absl::StatusOr<std::unique_ptr<StopRequest>> Create();
  ~StopRequest();
  StopRequest(const StopRequest&) = delete;
  StopRequest& operator=(const StopRequest&) = delete;

  // Async-signal-safe, too. The first reason counts; it must be a literal.
  void Request(const char* reason) noexcept;
  // While this object lives, each of the signals requests the stop. By a handler: it works
  // whichever threads exist already. The calling thread takes the signals from now on, even if it,
  // or all threads, had blocked them. One object at a time can do so.
  void OnSignals(std::initializer_list<int> signals);

  // Blocks until a stop was requested or, if `host` is given, until the host died. The answer is
  // the reason, for the log.
  std::string_view Wait(const HostWatch* host) const;

 private:
  explicit StopRequest(int fd) : fd_(fd) {}

  const int fd_;  // an eventfd: readable from the first request on
  std::atomic<const char*> reason_{nullptr};
};

void IgnoreSignal(int signal);

}  // namespace nomad_harvester::plugin

#endif  // NOMAD_HARVESTER_SRC_PLUGIN_STOP_REQUEST_H_
