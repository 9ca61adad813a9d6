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

// How long a full pipe that does not block may hold up the program before a line is given up.
constexpr std::chrono::milliseconds kWriteTimeout{500};

bool WaitUntilWritable(int fd) {
  pollfd poll_fd{.fd = fd, .events = POLLOUT, .revents = 0};
  return poll(&poll_fd, 1, static_cast<int>(kWriteTimeout.count())) == 1;
}

}  // namespace

// The lines arrive finished: the pattern passes them on and ends them.
LineSink::LineSink(int fd)
    : base_sink(
          std::make_unique<spdlog::pattern_formatter>("%v", spdlog::pattern_time_type::utc, "\n")),
      fd_(fd) {}

void LineSink::sink_it_(const spdlog::details::log_msg& message) {
  spdlog::memory_buf_t buffer;
  // What was torn off ends as a line of its own, so that this one stays whole.
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
      break;  // EPIPE and the like: there is nowhere to report it
    }
  }
  // Nothing written at all leaves the end of the file as it was.
  if (bytes.size() < total) torn_ = !bytes.empty();
}

}  // namespace nomad_harvester::log
