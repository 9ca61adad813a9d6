// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/log/sinks.h"

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <fcntl.h>
#include <functional>
#include <memory>
#include <mutex>
#include <poll.h>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "nomad_harvester/base/file.h"

#include "spdlog/details/log_msg.h"
#include "spdlog/sinks/base_sink.h"

namespace nomad_harvester::log {
namespace {

// How long a full non-blocking pipe may delay the program before the line is dropped.
constexpr std::chrono::milliseconds kWriteTimeout = std::chrono::seconds(2);

bool WaitUntilWritable(int fd, std::chrono::milliseconds patience) {
  pollfd poll_fd{.fd = fd, .events = POLLOUT, .revents = 0};
  return poll(&poll_fd, 1, static_cast<int>(patience.count())) == 1;
}

// Each line with its newline is one write(2), so that lines of several writers do not mix. If the
// reader has closed the pipe or does not read, lines are lost; nothing throws. The caller owns the
// descriptor.
class LineSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit LineSink(int fd) : fd_(fd) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    // The first newline ends a truncated previous line, so that this line stays complete.
    std::string text = torn_ ? "\n" : "";
    text.append(message.payload.data(), message.payload.size()) += '\n';
    Write(text);
  }
  void flush_() override {}

 private:
  void Write(std::string_view bytes) {
    const std::size_t total = bytes.size();
    // EPIPE and similar errors end it: there is nowhere to report them.
    while (base::WriteAll(fd_, &bytes) == EAGAIN && WaitUntilWritable(fd_, patience_)) {
    }
    // A reader that has stopped delays one line, and not each.
    patience_ = bytes.empty() ? kWriteTimeout : std::chrono::milliseconds::zero();
    // If nothing was written, the end of the file is unchanged.
    if (bytes.size() < total) torn_ = !bytes.empty();
  }

  const int fd_;
  bool torn_ = false;  // the last line ended before its newline
  std::chrono::milliseconds patience_ = kWriteTimeout;
};

// Formats in the caller's thread and passes the line to spdlog's sink.
class SpdlogSink final : public Sink {
 public:
  using Format = std::function<std::string(const Record&)>;
  SpdlogSink(int fd, Format format) : format_(std::move(format)), lines_(fd) {}

  void Write(const Record& record) override {
    try {
      // The level is in the line already; Logger has applied the threshold.
      lines_.log(spdlog::details::log_msg("", spdlog::level::info, format_(record)));
    } catch (
        ...) {  // NOLINT(bugprone-empty-catch): out of memory; a log line must not end the process
    }
  }

 private:
  const Format format_;
  LineSink lines_;
};

}  // namespace

std::shared_ptr<Sink> MakeHclogSink(std::string module) {
  // The host's end of a pipe may stop reading: no call may wait for it.
  struct stat info {};
  if (fstat(STDERR_FILENO, &info) == 0 && S_ISFIFO(info.st_mode)) {
    fcntl(STDERR_FILENO, F_SETFL, fcntl(STDERR_FILENO, F_GETFL) | O_NONBLOCK);
  }
  return MakeHclogSinkOn(STDERR_FILENO, std::move(module));
}

std::shared_ptr<Sink> MakePlainSink() {
  return std::make_shared<SpdlogSink>(STDERR_FILENO, FormatPlain);
}

std::shared_ptr<Sink> MakeHclogSinkOn(int fd, std::string module) {
  return std::make_shared<SpdlogSink>(fd, [module = std::move(module)](const Record& record) {
    return FormatHclog(record, module);
  });
}

}  // namespace nomad_harvester::log
