// SPDX-License-Identifier: Apache-2.0
// A recurring window of time: "0 2 * * 1-5 4h", in UTC.
#ifndef NOMAD_HARVESTER_CONFIG_CRON_WINDOW_H_
#define NOMAD_HARVESTER_CONFIG_CRON_WINDOW_H_

#include <array>
#include <bitset>
#include <string_view>

#include "nomad_harvester/base/time.h"

#include "absl/status/statusor.h"

namespace nomad_harvester::config {

// It opens at each minute at which its cron expression fires, and stays open until its duration has
// passed since the last one.
class CronWindow {
 public:
  // Takes five cron fields (minute, hour, day of month, month, day of week) and a Go duration from
  // 1m to 168h. INVALID_ARGUMENT names the wrong field; also for a window that never opens.
  static absl::StatusOr<CronWindow> Parse(std::string_view text);

  bool IsOpen(base::WallTime time) const;
  // Returns the first time, not before `time`, at which it is open.
  base::WallTime OpenFrom(base::WallTime time) const;

 private:
  CronWindow() = default;
  bool FiresOn(std::chrono::sys_days day) const;
  bool FiresAt(base::WallTime minute) const;

  // Of each field, in the order of cron, the values at which it fires. Sunday is 0.
  std::array<std::bitset<60>, 5> fires_;
  // If both fields are restricted, matching one of them is enough.
  bool restricts_days_of_month_ = false;
  bool restricts_days_of_week_ = false;
  base::Duration duration_{};
};

}  // namespace nomad_harvester::config

#endif  // NOMAD_HARVESTER_CONFIG_CRON_WINDOW_H_
