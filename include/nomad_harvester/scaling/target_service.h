// SPDX-License-Identifier: Apache-2.0
// What the plugin does, without a word about how it is called: SetConfig, Status, Scale.
#ifndef NOMAD_HARVESTER_SCALING_TARGET_SERVICE_H_
#define NOMAD_HARVESTER_SCALING_TARGET_SERVICE_H_

#include <cstdint>
#include <map>
#include <string>

#include "nomad_harvester/runtime/context.h"

#include "absl/status/statusor.h"

namespace nomad_harvester::scaling {

using StringMap = std::map<std::string, std::string>;

struct TargetStatus {
  bool ready = false;
  std::int64_t count = 0;
  StringMap meta;
};

// hashicorp/nomad-autoscaler:sdk/strategy.go, ScalingAction. The direction is left out on purpose:
// the agent does not keep it true to the count (rule C1).
struct ScaleAction {
  std::int64_t count = 0;
  std::string reason;
  // The action's meta as JSON text; empty: none.
  std::string meta_json;
};

// Thread-safe. Scale and Status block; SetConfig does not touch the network.
//
// Errors. "Busy" is ABORTED and nothing else ever is (rule C11): the agent takes that code as a
// no-op. INVALID_ARGUMENT: configuration, all problems listed. FAILED_PRECONDITION before the first
// SetConfig, and for what a preflight refuses; RESOURCE_EXHAUSTED: quota, back-off; UNAVAILABLE,
// DEADLINE_EXCEEDED: infrastructure; CANCELLED: the context's; INTERNAL: partial success, one line
// a VM. A Status call fails only for what its config map alone proves wrong (rule S3).
class TargetService {
 public:
  virtual ~TargetService() = default;
  virtual absl::Status SetConfig(const StringMap& config) = 0;
  virtual absl::StatusOr<TargetStatus> Status(const runtime::Context& context,
                                              const StringMap& policy) = 0;
  virtual absl::Status Scale(const runtime::Context& context, const ScaleAction& action,
                             const StringMap& policy) = 0;
  // Ends background work: no new request is begun, open ones are cancelled, Leases are released
  // within what `context` allows. Later calls answer CANCELLED. Idempotent.
  virtual void Stop(const runtime::Context& context) = 0;
};

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_TARGET_SERVICE_H_
