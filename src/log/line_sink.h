// SPDX-License-Identifier: Apache-2.0
// An spdlog sink that writes formatted lines to a file descriptor.
#ifndef NOMAD_HARVESTER_SRC_LOG_LINE_SINK_H_
#define NOMAD_HARVESTER_SRC_LOG_LINE_SINK_H_

#include <mutex>
#include <string_view>

#include "spdlog/sinks/base_sink.h"

namespace nomad_harvester::log {

// Each line with its newline is one write(2), so that lines of several writers do not mix. If the
// reader has closed the pipe or does not read, lines are lost; nothing throws. The caller owns the
// descriptor.
class LineSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit LineSink(int fd);

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override;
  void flush_() override {}

 private:
  void WriteAll(std::string_view bytes);

  const int fd_;
  bool torn_ = false;  // the last line ended before its newline
};

}  // namespace nomad_harvester::log

#endif  // NOMAD_HARVESTER_SRC_LOG_LINE_SINK_H_
