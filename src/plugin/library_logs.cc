// SPDX-License-Identifier: Apache-2.0
#include "library_logs.h"

#include <cerrno>
#include <cstdlib>
#include <exception>
#include <fcntl.h>
#include <string>
#include <system_error>
#include <unistd.h>

#include "nomad_harvester/base/mutex.h"

#include "google/protobuf/stubs/logging.h"
#include "grpc/support/log.h"

namespace nomad_harvester::plugin {
namespace {

struct Target {
  base::Mutex mutex;
  log::Logger logger NH_GUARDED_BY(mutex);
};

// Never destroyed, because library threads that log outlive main.
Target& TheTarget() {
  static Target& target = *new Target;
  return target;
}

log::Logger TheLogger() {
  Target& target = TheTarget();
  base::MutexLock lock(target.mutex);
  return target.logger;
}

// Logging allocates memory and may throw, but no exception may pass through the library that calls
// back: gRPC's core is written for C. If memory runs out, the line is lost.
template <typename Write>
void LogWithoutThrowing(Write write) noexcept {
  try {
    write();
  } catch (...) {  // NOLINT(bugprone-empty-catch): there is nowhere to report it
  }
}

// A library's error does not mean that the plugin has failed: gRPC logs a failed TLS handshake of
// an unknown client as an error.
void LogGrpc(gpr_log_func_args* args) {
  log::Level level = log::Level::kDebug;
  if (args->severity == GPR_LOG_SEVERITY_INFO) level = log::Level::kInfo;
  if (args->severity == GPR_LOG_SEVERITY_ERROR) level = log::Level::kWarn;
  LogWithoutThrowing([&] {
    TheLogger().Log(level, args->message,
                    {{"library", "grpc"}, {"file", args->file}, {"line", args->line}});
  });
}

void LogProtobuf(google::protobuf::LogLevel severity, const char* file, int line,
                 const std::string& message) {
  log::Level level = log::Level::kInfo;
  if (severity >= google::protobuf::LOGLEVEL_WARNING) level = log::Level::kWarn;
  if (severity >= google::protobuf::LOGLEVEL_FATAL) level = log::Level::kError;
  LogWithoutThrowing([&] {
    TheLogger().Log(level, message, {{"library", "protobuf"}, {"file", file}, {"line", line}});
  });
}

std::string CurrentException() {
  const std::exception_ptr current = std::current_exception();
  if (current == nullptr) return "no exception";
  try {
    std::rethrow_exception(current);
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "an exception of an unknown type";
  }
}

[[noreturn]] void LogAndAbort() {
  LogWithoutThrowing([] {
    TheLogger().Error("The plugin ends abnormally", {{"error", CurrentException()}});
  });
  std::abort();
}

}  // namespace

void RouteLibraryLogs(const log::Logger& logger) {
  {
    Target& target = TheTarget();
    base::MutexLock lock(target.mutex);
    target.logger = logger;
  }
  gpr_set_log_function(LogGrpc);
  google::protobuf::SetLogHandler(LogProtobuf);
  std::set_terminate(LogAndAbort);
}

void WarnWithoutRandomDevice(const log::Logger& logger, const char* device) {
  const int fd = open(device, O_RDONLY | O_CLOEXEC);
  if (fd >= 0) {
    close(fd);
  } else {
    logger.Warn("The ids of DNS queries can be guessed",
                {{"error", "cannot open " + std::string(device) + ": " +
                               std::generic_category().message(errno)}});
  }
}

}  // namespace nomad_harvester::plugin
