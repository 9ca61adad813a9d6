#include <algorithm>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/base/time.h"
#include "nomad_harvester/nodepool/drain.h"

namespace nomad_harvester::nodepool {
namespace {

// A posted zero would mean "no deadline".
constexpr base::Duration kLeastDeadline = std::chrono::seconds(1);
// Any negative deadline is "stop everything now" (hashicorp/nomad:nomad/structs/structs.go,
// DrainStrategy.DeadlineTime).
constexpr base::Duration kNow = std::chrono::seconds(-1);

void Join(std::string& problems, const absl::Status& status) {
  problems += (problems.empty() ? "" : ", ") + base::Message(status);
}

}  // namespace

absl::StatusOr<DrainSettings> ParseDrainSettings(const std::optional<std::string>& deadline,
                                                 const std::optional<std::string>& ignore_system) {
  DrainSettings settings;
  std::string problems;
  if (deadline.has_value()) {
    const auto parsed = base::ParseGoDuration(*deadline);
    if (!parsed.ok()) Join(problems, parsed.status());
    settings.deadline = parsed.value_or(settings.deadline);
  }
  if (ignore_system.has_value()) {
    const auto parsed = base::ParseGoBool(*ignore_system);
    if (!parsed.ok()) Join(problems, parsed.status());
    settings.ignore_system_jobs = parsed.value_or(false);
  }
  if (problems.empty()) return settings;
  return base::InvalidArgument("failed to generate node drainspec: " + problems);
}

PostedDeadline DeadlineToPost(bool none, bool at_once, base::WallTime deadline,
                              base::WallTime now) {
  if (none) return {true, base::Duration::zero()};
  if (at_once) return {true, kNow};
  // Compared before subtracted: the distance to a far past does not fit.
  if (deadline <= now) return {false, base::Duration::zero()};
  return {true, std::max(kLeastDeadline, base::Duration(deadline - now))};
}

}  // namespace nomad_harvester::nodepool
