// SPDX-License-Identifier: Apache-2.0
// What must be true before a pool can be scaled, one result per precondition (Maintenance::Check).
#ifndef NOMAD_HARVESTER_SCALING_CHECK_H_
#define NOMAD_HARVESTER_SCALING_CHECK_H_

#include <string>

namespace nomad_harvester::scaling {

// What a policy's dry-run means for its pool.
inline constexpr char kDryRunMeans[] =
    "the policy says dry-run = \"true\": what the agent wants is logged, and not done";

enum class CheckOutcome {
  kPass,
  kFail,     // a Scale, or the VMs that it makes, would fail
  kWarn,     // it works, at a price that the text names
  kUnknown,  // the token may not read it, or nothing tells
  kSkipped,  // something that it depends on has failed
};

// Plain data. No text holds a secret of the configuration; texts of other systems are as they came.
struct CheckResult {
  std::string id;       // "harvester.image": for programs, never changes
  std::string subject;  // the object: "image default/ubuntu-24.04"
  CheckOutcome outcome = CheckOutcome::kPass;
  std::string text;  // what was seen
  std::string cure;  // what to do; empty: nothing, or the text says it
};

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_CHECK_H_
