// SPDX-License-Identifier: Apache-2.0
// The message of all time-outs: what was waited for, and how long.
#ifndef NOMAD_HARVESTER_SRC_HTTP_TIMED_OUT_H_
#define NOMAD_HARVESTER_SRC_HTTP_TIMED_OUT_H_

#include <string>
#include <string_view>

#include "nomad_harvester/base/time.h"

#include "absl/status/status.h"

namespace nomad_harvester::http {

// "timed out after 10s waiting for https://host:443". `limit` is rounded, because the remaining
// time of a context is a little less than its timeout.
std::string TimedOutText(base::Duration limit, std::string_view doing);

// Takes the status of a context that ended during a wait: DEADLINE_EXCEEDED gets the text above;
// any other status is returned unchanged.
absl::Status TimedOut(const absl::Status& ended, base::Duration limit, std::string_view doing);

}  // namespace nomad_harvester::http

#endif  // NOMAD_HARVESTER_SRC_HTTP_TIMED_OUT_H_
