// SPDX-License-Identifier: Apache-2.0
// The labels and annotations that the plugin writes on objects.
//
// Times are RFC 3339 UTC by the API server's clock, durations have Go's syntax. These names and
// formats are fixed: operators and other programs read them (docs/configuration.md, "On the
// objects").
#ifndef NOMAD_HARVESTER_HARVESTER_METADATA_H_
#define NOMAD_HARVESTER_HARVESTER_METADATA_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "nomad_harvester/base/time.h"

#include "absl/status/statusor.h"

namespace nomad_harvester::harvester {

inline constexpr char kPoolLabel[] = "nomad-harvester-autoscaler/pool";
inline constexpr char kManagedByLabel[] = "app.kubernetes.io/managed-by";
inline constexpr char kManagedByValue[] = "nomad-harvester-autoscaler";
inline constexpr char kCreatorLabel[] = "harvesterhci.io/creator";

inline constexpr char kSelfAnnotation[] = "nomad-harvester-autoscaler/self";
inline constexpr char kActionIdAnnotation[] = "nomad-harvester-autoscaler/action-id";
inline constexpr char kTemplateHashAnnotation[] = "nomad-harvester-autoscaler/template-hash";
inline constexpr char kTemplatePartsAnnotation[] = "nomad-harvester-autoscaler/template-parts";
inline constexpr char kZoneAnnotation[] = "nomad-harvester-autoscaler/zone";
inline constexpr char kJoinTimeoutAnnotation[] = "nomad-harvester-autoscaler/join-timeout";
inline constexpr char kNodesAnnotation[] = "nomad-harvester-autoscaler/nodes";
// On the Secret: the time at which its introduction token expires.
inline constexpr char kIntroTokenExpiresAnnotation[] =
    "nomad-harvester-autoscaler/intro-token-expires";
inline constexpr char kNodeIdAnnotation[] = "nomad-harvester-autoscaler/nomad-node-id";
// On the VM, and on the pool's Lease.
inline constexpr char kNomadClusterAnnotation[] = "nomad-harvester-autoscaler/nomad-cluster";
inline constexpr char kJoinedAtAnnotation[] = "nomad-harvester-autoscaler/joined-at";
inline constexpr char kReadyAtAnnotation[] = "nomad-harvester-autoscaler/ready-at";
// The value of ready-at from the join until the node was seen ready.
inline constexpr char kNotReadyYet[] = "not-yet";
inline constexpr char kScaleInAnnotation[] = "nomad-harvester-autoscaler/scale-in";
inline constexpr char kRolledBackAnnotation[] = "nomad-harvester-autoscaler/rolled-back";
inline constexpr char kRemovalUndoneAnnotation[] = "nomad-harvester-autoscaler/removal-undone";
inline constexpr char kPublishedHostAnnotation[] = "nomad-harvester-autoscaler/published-host";
inline constexpr char kProtectAnnotation[] = "nomad-harvester-autoscaler/protect";
// An operator's reason for requesting the VM's replacement.
inline constexpr char kReplaceAnnotation[] = "nomad-harvester-autoscaler/replace";
// On a new VM: the VM that it replaces.
inline constexpr char kReplacesAnnotation[] = "nomad-harvester-autoscaler/replaces";
// Followed by a name: the VM is not deleted while it has the annotation (rule C18).
inline constexpr char kHoldAnnotationPrefix[] = "nomad-harvester-autoscaler/hold-";
inline constexpr char kDeleteFirstAnnotation[] = "nomad-harvester-autoscaler/delete-first";
inline constexpr char kLeaseActionAnnotation[] = "nomad-harvester-autoscaler/action";
inline constexpr char kLeaseBackOffAnnotation[] = "nomad-harvester-autoscaler/back-off";
inline constexpr char kLeaseLastEventAnnotation[] = "nomad-harvester-autoscaler/last-event";
inline constexpr char kLeaseLastErrorAnnotation[] = "nomad-harvester-autoscaler/last-error";
inline constexpr char kLeaseReplacementAnnotation[] = "nomad-harvester-autoscaler/replacement";
inline constexpr char kLeasePausedAnnotation[] = "nomad-harvester-autoscaler/paused";
inline constexpr char kLeasePolicyAnnotation[] = "nomad-harvester-autoscaler/policy";
// Harvester's own annotation: the claims that it deletes with the VM, comma-separated
// (harvester/harvester:pkg/util/constants.go,
// pkg/controller/master/virtualmachine/vm_controller.go).
inline constexpr char kRemovedClaimsAnnotation[] = "harvesterhci.io/removedPersistentVolumeClaims";

// The pool's node selection (region and identifiers) when a VM was created.
struct NodesRecord {
  std::string region;  // empty: none is configured
  std::optional<std::string> node_class;
  std::optional<std::string> datacenter;
  std::optional<std::string> node_pool;
  std::string node_attribute = "unique.hostname";
  std::uint64_t index = 0;  // Nomad's index when the VM was created
  friend bool operator==(const NodesRecord&, const NodesRecord&) = default;
};
// Unknown members are dropped on reading, because apart from `harvester adopt` the plugin writes
// the annotation only once.
std::string ToAnnotation(const NodesRecord& nodes);
absl::StatusOr<NodesRecord> ParseNodesRecord(std::string_view text);

enum class MarkReason { kScaleIn, kBroken, kUnhealthy, kReplace };
std::string_view MarkReasonName(MarkReason reason);
// True if the VM works, so that its removal may be given up.
inline bool IsElective(MarkReason reason) {
  return reason == MarkReason::kScaleIn || reason == MarkReason::kReplace;
}

// The time by which a drain must have finished.
struct DrainDeadline {
  enum class Kind { kAt, kNone, kNow };
  Kind kind = Kind::kNone;
  base::WallTime at{};  // kAt only
  friend bool operator==(const DrainDeadline&, const DrainDeadline&) = default;
};

// The mark: the annotation scale-in. It holds everything needed to finish a removal, independent of
// later policy changes.
struct Mark {
  std::string action;
  MarkReason reason = MarkReason::kScaleIn;
  std::string vm_uid;
  std::string node_id;  // empty: the VM has no node
  base::WallTime marked_at{};
  DrainDeadline drain_deadline;
  base::Duration grace{};
  bool force = true;
  bool ignore_system = false;
  bool purge = false;
  NodesRecord nodes;
  // Members of the annotation that this version does not know, as JSON text; written back
  // unchanged.
  std::string unknown_members = {};
  friend bool operator==(const Mark&, const Mark&) = default;
};
std::string ToAnnotation(const Mark& mark);
// INVALID_ARGUMENT if it is unreadable. The caller then assumes that somebody edited the mark, and
// rolls the removal back.
absl::StatusOr<Mark> ParseMark(std::string_view text);

// The annotation removal-undone of a VM: when and why the plugin removed its mark. The text is
// "<time> <why>".
struct CancelledRemoval {
  base::WallTime at{};
  std::string why;
  friend bool operator==(const CancelledRemoval&, const CancelledRemoval&) = default;
};
std::string ToAnnotation(const CancelledRemoval& undone);
// INVALID_ARGUMENT if it does not begin with a time.
absl::StatusOr<CancelledRemoval> ParseUndoneRemoval(std::string_view text);

// Why a VM is replaced.
struct ReplaceReason {
  // The most urgent one first.
  enum class Kind { kUnhealthy, kRequested, kHost, kDrifted, kExpired };
  Kind kind = Kind::kUnhealthy;
  // kRequested: the operator's words. kHost: the cordoned host. kDrifted: the parts that differ, if
  // they are known.
  std::string detail = {};
  friend bool operator==(const ReplaceReason&, const ReplaceReason&) = default;
};
// For people: "unhealthy", "requested: its disk is full", "host rack1-a is cordoned",
// "drifted: image, tags", "expired".
std::string Describe(const ReplaceReason& reason);

// The annotation `replaces` of a new VM: it replaces that VM, which is removed once the new one is
// ready (rule R1).
struct Replaces {
  std::string vm;
  std::string uid;
  ReplaceReason reason = {};
  // The new VM is Halted, and starts with this run strategy once the old one is gone (rule R8).
  // Empty: it was started on creation.
  std::string start = {};
  // What the other VM was made of; empty: unknown.
  std::string was = {};
  // What the place was made of before that, and until when (RFC 3339), within the last day.
  std::map<std::string, std::string> had = {};
  // How often in a row the place has changed back to one of these.
  std::int64_t flips = 0;
  std::string unknown_members = {};  // as in Mark
  friend bool operator==(const Replaces&, const Replaces&) = default;
};
// {"vm": …, "uid": …, "reason": …, "detail": …, "start": …, "was": …, "had": {…: …}, "flips": …}
std::string ToAnnotation(const Replaces& replaces);
// A reason of another version is kRequested, with its text as the detail.
absl::StatusOr<Replaces> ParseReplaces(std::string_view text);

// The annotation published-host of a VM: the host information that the plugin wrote into the
// metadata of the VM's Nomad node.
struct PublishedHost {
  std::string node_id;
  std::string host;
  std::optional<std::string> zone = {};  // unset: none was known
  std::string unknown_members = {};      // as in Mark
  friend bool operator==(const PublishedHost&, const PublishedHost&) = default;
};
// {"node_id": …, "host": …, "zone": …}
std::string ToAnnotation(const PublishedHost& published);
absl::StatusOr<PublishedHost> ParsePublishedHost(std::string_view text);

// The annotation `action` of the pool's Lease.
struct LeaseAction {
  std::string id;
  std::int64_t from = 0;
  std::int64_t to = 0;
  std::set<std::string> names = {};                // VMs that it creates or marks
  std::map<std::string, std::string> create = {};  // name → action id of VMs still to be created
  // VMs whose removal is cancelled (rule L6). Written only if there are any.
  std::set<std::string> cancel = {};
  // Its removals go on although too many VMs have lost their nodes, because that has lasted long
  // enough (rule C15). Written only if true.
  bool despite_mass_loss = false;
  std::string unknown_members = {};
  friend bool operator==(const LeaseAction&, const LeaseAction&) = default;
};
std::string ToAnnotation(const LeaseAction& action);
absl::StatusOr<LeaseAction> ParseLeaseAction(std::string_view text);

// The annotation `back-off` of the pool's Lease: for each cause, the number of failures and the
// time of the next attempt.
struct BackOffEntry {
  std::int64_t failures = 0;
  base::WallTime retry_at{};
  std::string action = {};           // that failed last; empty: not known
  std::string unknown_members = {};  // as in Mark
  friend bool operator==(const BackOffEntry&, const BackOffEntry&) = default;
};
using BackOff = std::map<std::string, BackOffEntry>;
std::string ToAnnotation(const BackOff& back_off);
absl::StatusOr<BackOff> ParseBackOff(std::string_view text);

// The annotation `policy` of the pool's Lease: the policy of the last Scale (rule L11).
struct PolicyRecord {
  std::string id;
  base::WallTime at{};
  std::optional<std::string> before = {};  // the id of the last other policy that scaled
  std::string unknown_members = {};        // as in Mark
  friend bool operator==(const PolicyRecord&, const PolicyRecord&) = default;
};
// {"id": …, "at": …, "before": …}
std::string ToAnnotation(const PolicyRecord& policy);
absl::StatusOr<PolicyRecord> ParsePolicyRecord(std::string_view text);

// The annotation `last-error` of the pool's Lease: why the last action failed or was refused, and
// what of it failed later, a line each. Kept until an action is accepted, until the pool has the
// count of that action and nothing of it is unfinished, until a VM that takes the place of another
// one is ready, or until growth is not wanted any more that lacked room (rule T1).
struct ErrorRecord {
  std::string action{};  // empty: of a replacement, or a lack of room
  std::string vm{};      // whose replacement failed; empty: none
  base::WallTime at{};
  std::string text{};
  std::string unknown_members = {};  // as in Mark
  friend bool operator==(const ErrorRecord&, const ErrorRecord&) = default;
};
// {"action": …, "at": …, "text": …}; a longer text is cut to 2 KiB.
std::string ToAnnotation(const ErrorRecord& error);
absl::StatusOr<ErrorRecord> ParseErrorRecord(std::string_view text);

// The annotation `replacement` of the pool's Lease: a new VM was not ready by its deadline, so no
// more VMs are replaced from the same template; or it lacked room, which stops nothing (rule R5).
struct StoppedReplacement {
  base::WallTime at{};        // of several that lacked room: the first one's
  std::string vm;             // the new VM; empty: none was made, because it would lack room
  std::string template_hash;  // that VM's
  std::string why;
  bool lacks_room = false;
  std::string unknown_members = {};  // as in Mark
  friend bool operator==(const StoppedReplacement&, const StoppedReplacement&) = default;
};
// {"stopped_at": …, "vm": …, "template_hash": …, "why": …}, and "lacks_room" if it is true; a
// longer text is cut to 2 KiB.
std::string ToAnnotation(const StoppedReplacement& stopped);
absl::StatusOr<StoppedReplacement> ParseStoppedReplacement(std::string_view text);

// The names of a VM's disks and volumes: DiskName by their order, and kCloudInitDisk for the
// cloud-init data, which Harvester's UI recognises by that name
// (harvester/harvester:pkg/builder/cloudinit.go).
inline constexpr char kCloudInitDisk[] = "cloudinitdisk";
std::string DiskName(std::size_t index);
// True for both kinds of names.
bool IsDiskName(std::string_view name);

// "<name>/<firmware uuid>".
std::string SelfValue(std::string_view name, std::string_view firmware_uuid);
// Names of the objects that belong to a VM and to a pool.
std::string SecretName(std::string_view vm_name);
std::string ClaimName(std::string_view vm_name, int disk, std::string_view random);
// True if `claim` has the form that ClaimName gives for that VM.
bool IsClaimNameOf(std::string_view claim, std::string_view vm_name);
// Returns the disk, such as "disk-0", to which `claim` belongs, either as a claim of that VM or as
// one that Harvester restored in its place: "restore-<backup>-<uid of the restore>-disk-0"
// (harvester/harvester:pkg/controller/master/backup/util.go, getRestorePVCName). Empty: neither.
std::string_view DiskOfClaim(std::string_view claim, std::string_view vm_name);
std::string LeaseName(std::string_view pool);
// Selects every object that the plugin created.
std::string ManagedSelector();

}  // namespace nomad_harvester::harvester

#endif  // NOMAD_HARVESTER_HARVESTER_METADATA_H_
