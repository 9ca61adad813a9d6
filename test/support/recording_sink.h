// SPDX-License-Identifier: Apache-2.0
// A log sink that keeps every record.
#ifndef NOMAD_HARVESTER_TEST_SUPPORT_RECORDING_SINK_H_
#define NOMAD_HARVESTER_TEST_SUPPORT_RECORDING_SINK_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/log/logger.h"
#include "nomad_harvester/log/sinks.h"

namespace nomad_harvester::support {

class RecordingSink final : public log::Sink {
 public:
  void Write(const log::Record& record) override {
    const base::MutexLock lock(mutex_);
    records_.push_back(record);
  }

  std::vector<log::Record> records() const {
    const base::MutexLock lock(mutex_);
    return records_;
  }
  // All messages with their fields, one line each, for the output of a failed test.
  std::string Text() const {
    std::string text;
    for (const log::Record& record : records()) text += log::FormatPlain(record) + "\n";
    return text;
  }
  // The records of that level or above whose line contains the text.
  std::size_t Count(std::string_view text, log::Level at_least = log::Level::kTrace) const {
    std::size_t count = 0;
    for (const log::Record& record : records()) {
      const bool counts =
          record.level >= at_least && log::FormatPlain(record).find(text) != std::string::npos;
      count += counts ? 1 : 0;
    }
    return count;
  }

 private:
  mutable base::Mutex mutex_;
  std::vector<log::Record> records_ NH_GUARDED_BY(mutex_);
};

}  // namespace nomad_harvester::support

#endif  // NOMAD_HARVESTER_TEST_SUPPORT_RECORDING_SINK_H_
