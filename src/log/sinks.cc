// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/log/sinks.h"

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>

#include "line_sink.h"
#include "spdlog/details/log_msg.h"

namespace nomad_harvester::log {
namespace {

spdlog::level::level_enum ToSpdlog(Level level) {
  switch (level) {
    case Level::kTrace:
      return spdlog::level::trace;
    case Level::kDebug:
      return spdlog::level::debug;
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kWarn:
      return spdlog::level::warn;
    case Level::kError:
      break;
  }
  return spdlog::level::err;
}

// Formats in the caller's thread and passes the line to spdlog's sink.
class SpdlogSink final : public Sink {
 public:
  using Format = std::function<std::string(const Record&)>;
  SpdlogSink(int fd, Format format) : format_(std::move(format)), lines_(fd) {}

  void Write(const Record& record) override {
    try {
      const std::string line = format_(record);
      lines_.log(spdlog::details::log_msg(spdlog::string_view_t(), ToSpdlog(record.level),
                                          spdlog::string_view_t(line.data(), line.size())));
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
