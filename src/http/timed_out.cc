// SPDX-License-Identifier: Apache-2.0
#include "timed_out.h"

#include <chrono>

#include "nomad_harvester/base/status.h"

namespace nomad_harvester::http {
namespace {

using Tenths = std::chrono::duration<std::int64_t, std::deci>;

}  // namespace

std::string TimedOutText(base::Duration limit, std::string_view doing) {
  const base::Duration rounded = limit < std::chrono::seconds(1)
                                     ? std::chrono::round<std::chrono::milliseconds>(limit)
                                     : std::chrono::round<Tenths>(limit);
  return "timed out after " + base::FormatGoDuration(rounded) + " " + std::string(doing);
}

absl::Status TimedOut(const absl::Status& ended, base::Duration limit, std::string_view doing) {
  if (!absl::IsDeadlineExceeded(ended)) return ended;
  return base::MakeStatus(ended.code(), TimedOutText(limit, doing));
}

}  // namespace nomad_harvester::http
