// SPDX-License-Identifier: Apache-2.0
//
// Writes operators' holds on a pool's Lease.
#include <optional>
#include <string>
#include <utility>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/kube/lease.h"
#include "nomad_harvester/kube/object.h"
#include "nomad_harvester/scaling/maintenance.h"

#include "commands/command_run.h"
#include "nlohmann/json.hpp"

namespace nomad_harvester::scaling {

namespace {

// A success proves nothing unless the reply is the Lease with the written text, because a proxy may
// have answered.
absl::Status CheckStored(const kube::Observed& reply, const std::string& name,
                         const char* annotation, const std::optional<std::string>& text) {
  const absl::StatusOr<kube::Lease> lease = kube::ParseLeaseReply(reply, name);
  if (lease.ok()) {
    const auto stored = lease->annotations.find(annotation);
    const bool is_as_wanted = text.has_value()
                                  ? stored != lease->annotations.end() && stored->second == *text
                                  : stored == lease->annotations.end();
    if (is_as_wanted) return absl::OkStatus();
  }
  return base::Unavailable("Lease " + name +
                           ": the reply is not the Lease with what was written: whether it was "
                           "written is not known; repeat it, and check harvester_url");
}

// Returns whether the Lease has what was written. A write whose answer was lost or says nothing
// about it may have been done, so the Lease is read again.
absl::Status CheckWritten(const runtime::Context& context, const kube::KubeClient& client,
                          const PoolKey& key, const absl::StatusOr<kube::Observed>& reply,
                          const char* annotation, const std::optional<std::string>& text) {
  const std::string name = harvester::LeaseName(key.pool);
  if (reply.ok()) return CheckStored(*reply, name, annotation, text);
  if (kube::IsRefused(reply.status()) || kube::IsNotFound(reply.status())) return reply.status();
  const auto now = client.Get(context, kube::kLeases, key.ns, name);
  const bool written = now.ok() && CheckStored(*now, name, annotation, text).ok();
  return written ? absl::OkStatus() : reply.status();
}

}  // namespace

absl::Status WriteOnLease(const runtime::Context& context, const kube::KubeClient& client,
                          const PoolKey& key, const char* annotation,
                          const std::optional<std::string>& text) {
  const std::string name = harvester::LeaseName(key.pool);
  const auto reply = client.MergePatch(context, kube::kLeases, key.ns, name,
                                       kube::LeasePatch({.annotations = {{annotation, text}}}));
  return CheckWritten(context, client, key, reply, annotation, text);
}

namespace {

// Removes the annotation that holds a pool from its Lease.
absl::StatusOr<WasHeld> RemoveFromLease(const runtime::Context& context,
                                        const kube::KubeClient& client, const PoolKey& key,
                                        const char* annotation) {
  const std::string name = harvester::LeaseName(key.pool);
  const auto observed = client.Get(context, kube::kLeases, key.ns, name);
  if (kube::IsNotFound(observed.status())) return WasHeld::kNoLease;
  NH_ASSIGN_OR_RETURN(const kube::Lease lease, kube::ParseLeaseReply(observed, name));
  if (!lease.annotations.contains(annotation)) return WasHeld::kNo;
  NH_RETURN_IF_ERROR(WriteOnLease(context, client, key, annotation, std::nullopt));
  return WasHeld::kYes;
}

}  // namespace

absl::StatusOr<bool> Maintenance::Pause(const runtime::Context& context, const PoolKey& key,
                                        const harvester::Hold& hold) const {
  const std::string text = harvester::FormatHold(hold);
  const absl::Status written =
      WriteOnLease(context, *clients_.kube, key, harvester::kLeasePausedAnnotation, text);
  if (!kube::IsNotFound(written)) {
    NH_RETURN_IF_ERROR(written);
    return true;
  }
  kube::Lease lease{.name = harvester::LeaseName(key.pool), .ns = key.ns};
  lease.annotations[harvester::kLeasePausedAnnotation] = text;
  const auto created = clients_.kube->Create(
      context, kube::kLeases, key.ns,
      kube::LeaseObject(lease, {{harvester::kManagedByLabel, harvester::kManagedByValue},
                                {harvester::kPoolLabel, key.pool}}));
  NH_RETURN_IF_ERROR(
      CheckWritten(context, *clients_.kube, key, created, harvester::kLeasePausedAnnotation, text));
  return false;
}

absl::StatusOr<WasHeld> Maintenance::Resume(const runtime::Context& context,
                                            const PoolKey& key) const {
  return RemoveFromLease(context, *clients_.kube, key, harvester::kLeasePausedAnnotation);
}

absl::StatusOr<WasHeld> Maintenance::ResumeReplacement(const runtime::Context& context,
                                                       const PoolKey& key) const {
  return RemoveFromLease(context, *clients_.kube, key, harvester::kLeaseReplacementAnnotation);
}

}  // namespace nomad_harvester::scaling
