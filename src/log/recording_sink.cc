#include <string>
#include <vector>

#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/log/sinks.h"

namespace nomad_harvester::log {

void RecordingSink::Write(const Record& record) {
  base::MutexLock lock(mutex_);
  records_.push_back(record);
}

std::vector<Record> RecordingSink::records() const {
  base::MutexLock lock(mutex_);
  return records_;
}

std::string RecordingSink::Text() const {
  std::string text;
  for (const Record& record : records()) text += FormatPlain(record) + "\n";
  return text;
}

}  // namespace nomad_harvester::log
