// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/log/sinks.h"

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <poll.h>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>

#include "nomad_harvester/base/file.h"
#include "nomad_harvester/base/mutex.h"

namespace nomad_harvester::log {
namespace {

// How long a full non-blocking pipe may delay the program before the line is dropped.
constexpr std::chrono::milliseconds kWriteTimeout{500};

bool WaitUntilWritable(int fd) {
  pollfd poll_fd{.fd = fd, .events = POLLOUT, .revents = 0};
  return poll(&poll_fd, 1, static_cast<int>(kWriteTimeout.count())) == 1;
}

// Each line with its newline is one write(2), so that lines of several writers do not mix. If the
// reader has closed the pipe or does not read, lines are lost; nothing throws. The caller owns the
// descriptor.
class LineSink final : public Sink {
 public:
  using Format = std::function<std::string(const Record&)>;
  LineSink(int fd, Format format) : fd_(fd), format_(std::move(format)) {}

  void Write(const Record& record) override {
    try {
      const std::string line = format_(record) + '\n';
      const base::MutexLock lock(mutex_);
      // The first newline ends a truncated previous line, so that this line stays complete.
      WriteBytes(torn_ ? '\n' + line : line);
    } catch (
        ...) {  // NOLINT(bugprone-empty-catch): out of memory; a log line must not end the process
    }
  }

 private:
  void WriteBytes(std::string_view bytes) NH_REQUIRES(mutex_) {
    const std::size_t total = bytes.size();
    // EPIPE and similar errors end it: there is nowhere to report them.
    while (base::WriteAll(fd_, &bytes) == EAGAIN && WaitUntilWritable(fd_)) {
    }
    // If nothing was written, the end of the file is unchanged.
    if (bytes.size() < total) torn_ = !bytes.empty();
  }

  const int fd_;
  const Format format_;
  base::Mutex mutex_;  // also held during the write: its lines must stay whole
  bool torn_ NH_GUARDED_BY(mutex_) = false;  // the last line ended before its newline
};

}  // namespace

std::shared_ptr<Sink> MakeHclogSink(std::string module) {
  return MakeHclogSinkOn(STDERR_FILENO, std::move(module));
}

std::shared_ptr<Sink> MakePlainSink() {
  return std::make_shared<LineSink>(STDERR_FILENO, FormatPlain);
}

std::shared_ptr<Sink> MakeHclogSinkOn(int fd, std::string module) {
  return std::make_shared<LineSink>(fd, [module = std::move(module)](const Record& record) {
    return FormatHclog(record, module);
  });
}

}  // namespace nomad_harvester::log
