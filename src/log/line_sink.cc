// SPDX-License-Identifier: Apache-2.0
#include "line_sink.h"

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <poll.h>
#include <string_view>
#include <unistd.h>

#include "spdlog/pattern_formatter.h"

namespace nomad_harvester::log {
namespace {

// How long a full non-blocking pipe may delay the program before the line is dropped.
constexpr std::chrono::milliseconds kWriteTimeout{500};

bool WaitUntilWritable(int fd) {
  pollfd poll_fd{.fd = fd, .events = POLLOUT, .revents = 0};
  return poll(&poll_fd, 1, static_cast<int>(kWriteTimeout.count())) == 1;
}

}  // namespace

// The lines are already formatted: the pattern only adds the newline.
LineSink::LineSink(int fd)
    : base_sink(
          std::make_unique<spdlog::pattern_formatter>("%v", spdlog::pattern_time_type::utc, "\n")),
      fd_(fd) {}

void LineSink::sink_it_(const spdlog::details::log_msg& message) {
  spdlog::memory_buf_t buffer;
  // Ends a truncated previous line, so that this line stays complete.
  if (torn_) buffer.push_back('\n');
  formatter_->format(message, buffer);
  WriteAll(std::string_view(buffer.data(), buffer.size()));
}

void LineSink::WriteAll(std::string_view bytes) {
  const std::size_t total = bytes.size();
  while (!bytes.empty()) {
    const ssize_t written = write(fd_, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno != EINTR && (errno != EAGAIN || !WaitUntilWritable(fd_))) {
      break;  // EPIPE and similar errors: there is nowhere to report them
    }
  }
  // If nothing was written, the end of the file is unchanged.
  if (bytes.size() < total) torn_ = !bytes.empty();
}

}  // namespace nomad_harvester::log
