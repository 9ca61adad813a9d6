// SPDX-License-Identifier: Apache-2.0
// Checks the schedule of a policy or a check. Private to module cli.
#ifndef NOMAD_HARVESTER_CLI_AGENT_SCHEDULE_H_
#define NOMAD_HARVESTER_CLI_AGENT_SCHEDULE_H_

#include <string>

namespace nomad_harvester::cli {

// The argument that is wrong, and why; an empty `why`: none is.
struct ScheduleProblem {
  std::string argument;
  std::string why;
};

// What the agent refuses (hashicorp/nomad-autoscaler:sdk/schedule.go,
// ValidateScalingPolicySchedule): start, and one of end and duration. start and end are cron
// expressions of five fields (hashicorp/cronexpr:cronexpr_parse.go).
ScheduleProblem ProblemOfSchedule(const std::string& start, const std::string& end,
                                  const std::string& duration);

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_AGENT_SCHEDULE_H_
