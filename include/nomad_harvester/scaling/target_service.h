// SPDX-License-Identifier: Apache-2.0
// The plugin's operations, independent of gRPC: SetConfig, Status, Scale.
#ifndef NOMAD_HARVESTER_SCALING_TARGET_SERVICE_H_
#define NOMAD_HARVESTER_SCALING_TARGET_SERVICE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
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

// An operator's consent: a Scale that would remove any other VM is refused.
struct RemovalConsent {
  std::set<std::string> vms;
  std::set<std::string> reserve;  // may be removed instead of a VM that must stay (rule L5)
};

// ScalingAction of hashicorp/nomad-autoscaler:sdk/strategy.go. The direction is omitted on purpose:
// the agent does not keep it consistent with the count (rule C1).
struct ScaleAction {
  std::int64_t count = 0;
  std::string reason;
  // The action's meta as JSON text; empty: none.
  std::string meta_json;
  // Unset in calls of the agent, because no operator was asked.
  std::optional<RemovalConsent> consent{};
  bool goes_on = true;  // the background of this process continues the action
  // Set if the action has begun: an error then says what of it has failed. Null: not asked for.
  bool* has_begun = nullptr;
};

// Thread-safe. Scale and Status block; SetConfig makes no network request.
//
// Errors. ABORTED means "busy" and nothing else (rule C11): the agent treats that code as a no-op.
// INVALID_ARGUMENT: configuration, with all problems listed. FAILED_PRECONDITION: before the first
// SetConfig, and for what a preflight refuses. NOT_FOUND: an object that the policy names does not
// exist. RESOURCE_EXHAUSTED: quota, back-off. UNAVAILABLE, DEADLINE_EXCEEDED: infrastructure.
// CANCELLED: the context's. INTERNAL: partial success, one line per VM. A Status call fails only if
// its config map alone is invalid (rule S3).
class TargetService {
 public:
  virtual ~TargetService() = default;
  virtual absl::Status SetConfig(const StringMap& config) = 0;
  virtual absl::StatusOr<TargetStatus> Status(const runtime::Context& context,
                                              const StringMap& policy) = 0;
  virtual absl::Status Scale(const runtime::Context& context, const ScaleAction& action,
                             const StringMap& policy) = 0;
  // Waits, within `context`, until the Kubernetes Events posted by earlier calls are sent or lost
  // (rule T1); Stop drops them.
  virtual void Flush(const runtime::Context& context) = 0;
  // Ends background work: starts no new requests, cancels running ones, and releases Leases within
  // `context`. Later calls return CANCELLED. Idempotent.
  virtual void Stop(const runtime::Context& context) = 0;
};

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_TARGET_SERVICE_H_
