// SPDX-License-Identifier: Apache-2.0
#ifndef NOMAD_HARVESTER_TEST_LOG_MAKE_RECORD_H_
#define NOMAD_HARVESTER_TEST_LOG_MAKE_RECORD_H_

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "nomad_harvester/base/time.h"
#include "nomad_harvester/log/sinks.h"

namespace nomad_harvester::log {

// Of 2026-11-21T02:03:04Z.
inline Record MakeRecord(std::string message, std::vector<Field> fields = {}) {
  Record record;
  record.time = base::WallTime(std::chrono::seconds(1795226584));
  record.message = std::move(message);
  record.fields = std::move(fields);
  return record;
}

}  // namespace nomad_harvester::log

#endif  // NOMAD_HARVESTER_TEST_LOG_MAKE_RECORD_H_
