// SPDX-License-Identifier: Apache-2.0
//
// Writes operators' holds on a pool's Lease.
#include <optional>
#include <string>
#include <utility>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/kube/lease.h"
#include "nomad_harvester/kube/object.h"
#include "nomad_harvester/kube/observed.h"
#include "nomad_harvester/scaling/maintenance.h"

#include "commands/command_run.h"
#include "nlohmann/json.hpp"

namespace nomad_harvester::scaling {

namespace {

// True if the reply is the Lease with the written text.
absl::StatusOr<bool> Shows(const absl::StatusOr<kube::Observed>& reply, const std::string& name,
                           const char* annotation, const std::optional<std::string>& text) {
  NH_ASSIGN_OR_RETURN(const kube::Lease lease, kube::ParseLeaseReply(reply, name));
  const auto stored = lease.annotations.find(annotation);
  if (!text.has_value()) return stored == lease.annotations.end();
  return stored != lease.annotations.end() && stored->second == *text;
}

std::string TextOf(const PoolKey& key) { return "the Lease of pool " + key.ToString(); }

// A success proves nothing unless the reply is the Lease with the written text, because a proxy may
// have answered.
absl::Status CheckWritten(const runtime::Context& context, const kube::KubeClient& client,
                          const PoolKey& key, const absl::StatusOr<kube::Observed>& reply,
                          const char* annotation, const std::optional<std::string>& text) {
  const std::string name = harvester::LeaseName(key.pool);
  absl::Status outcome = reply.status();
  if (reply.ok() && !Shows(reply, name, annotation, text).value_or(false)) {
    outcome = base::Unavailable(
        "the reply is not the Lease with what was written; check "
        "harvester_url");
  }
  return Settle(outcome, TextOf(key), [&] {
    return Shows(client.Get(context, kube::kLeases, key.ns, name), name, annotation, text);
  });
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
  const auto lease = kube::ParseLeaseReply(observed, name);
  if (!lease.ok()) {
    return base::Annotate(lease.status(), TextOf(key) + " was not written, as it cannot be read");
  }
  const auto text = lease->annotations.find(annotation);
  if (text == lease->annotations.end()) return WasHeld::kNo;
  // What is no pause, a stopped replacement, holds at any time.
  const auto& now = observed->server_time;
  const bool holds = !now.has_value() || base::ParseHold(text->second).HoldsAt(*now);
  NH_RETURN_IF_ERROR(WriteOnLease(context, client, key, annotation, std::nullopt));
  return holds ? WasHeld::kYes : WasHeld::kEnded;
}

}  // namespace

absl::StatusOr<bool> Maintenance::Pause(const runtime::Context& context, const PoolKey& key,
                                        const base::Hold& hold) const {
  const std::string text = base::FormatHold(hold);
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
