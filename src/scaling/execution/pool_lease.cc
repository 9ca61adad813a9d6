// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/scaling/pool_lease.h"

#include <algorithm>
#include <set>
#include <utility>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/kube/error.h"
#include "nomad_harvester/kube/observed.h"

#include "absl/strings/str_join.h"
#include "execution/lease_permit.h"
#include "nlohmann/json.hpp"

namespace nomad_harvester::scaling {
namespace {

// Interval for reading the Lease of a holder that has stopped renewing.
constexpr base::Duration kLookInterval = std::chrono::seconds(2);
// A conflict with our own renewal is resolved by reading again. More conflicts than this have
// another cause.
constexpr int kPatchAttempts = 4;
// HTTP dates have whole seconds, so the difference of two dates may be off by up to a second.
constexpr base::Duration kDateResolution = std::chrono::seconds(1);
// Time limit of a plain release after a release with a record has failed.
constexpr base::Duration kPlainRelease = std::chrono::milliseconds(700);

// `known`: what the Lease has. An operator removes the stopped replacement at any time (rule R5),
// so it is written only where it changes.
std::map<std::string, std::optional<std::string>> RecordAnnotations(const PoolRecord& record,
                                                                    const PoolRecord& known) {
  std::map<std::string, std::optional<std::string>> annotations;
  const auto put = [&](const char* key, const auto& value) {
    annotations[key] =
        value.has_value() ? std::optional(harvester::ToAnnotation(*value)) : std::nullopt;
  };
  put(harvester::kLeaseActionAnnotation, record.action);
  put(harvester::kLeasePolicyAnnotation, record.policy);
  if (record.replacement != known.replacement) {
    put(harvester::kLeaseReplacementAnnotation, record.replacement);
  }
  put(harvester::kLeaseLastErrorAnnotation, record.last_error);
  annotations[harvester::kLeaseBackOffAnnotation] =
      record.back_off.empty() ? std::nullopt
                              : std::optional(harvester::ToAnnotation(record.back_off));
  annotations[harvester::kLeaseLastEventAnnotation] =
      record.last_event ? std::optional(base::FormatRfc3339Nanos(*record.last_event))
                        : std::nullopt;
  return annotations;
}

base::Hold PauseIn(const kube::Lease& lease) {
  const auto paused = lease.annotations.find(harvester::kLeasePausedAnnotation);
  return paused == lease.annotations.end() ? base::Hold{} : base::ParseHold(paused->second);
}

std::string ClusterIn(const kube::Lease& lease) {
  const auto keys = lease.annotations.find(harvester::kNomadClusterAnnotation);
  return keys == lease.annotations.end() ? "" : keys->second;
}

// Drops what was written by hand and names no VM that can exist: nothing would ever end for it.
void DropImpossibleNames(harvester::LeaseAction* action, const log::Logger& logger) {
  std::set<std::string> dropped;
  const auto drop = [&](auto* names, const auto& name_of) {
    std::erase_if(*names, [&](const auto& entry) {
      const bool impossible = !base::IsDnsSubdomain(name_of(entry));
      if (impossible) dropped.insert(name_of(entry));
      return impossible;
    });
  };
  const auto itself = [](const std::string& name) -> const std::string& { return name; };
  drop(&action->names, itself);
  drop(&action->cancel, itself);
  drop(&action->create, [](const auto& entry) -> const std::string& { return entry.first; });
  if (dropped.empty()) return;
  logger.Warn("Ignoring names on the pool's Lease that no VM can have",
              {{"action_id", action->id}, {"names", absl::StrJoin(dropped, ", ")}});
}

// True if the Lease looks as a release with this change leaves it.
bool IsDone(const kube::LeaseChange& change, const kube::Lease& lease) {
  return lease.holder.empty() &&
         std::all_of(change.annotations.begin(), change.annotations.end(), [&](const auto& entry) {
           const auto found = lease.annotations.find(entry.first);
           return entry.second.has_value()
                      ? found != lease.annotations.end() && found->second == *entry.second
                      : found == lease.annotations.end();
         });
}

}  // namespace

absl::Status WithLeaseRule(const absl::Status& outcome, const PoolKey& key) {
  if (!kube::MayLackRight(outcome)) return outcome;
  return base::Annotate(outcome, "pool " + key.ToString() +
                                     " needs its Lease; the token's Role in namespace " + key.ns +
                                     " needs the rule {apiGroups: [coordination.k8s.io], "
                                     "resources: [leases], verbs: [get, create, patch]}");
}

PoolRecord ParsePoolRecord(const kube::Lease& lease, const log::Logger& logger) {
  PoolRecord record{.paused = PauseIn(lease), .nomad_cluster = ClusterIn(lease)};
  const auto read = [&](const char* key, auto parse, auto* field) {
    const auto found = lease.annotations.find(key);
    if (found == lease.annotations.end()) return;
    auto value = parse(found->second);
    if (value.ok()) {
      *field = *std::move(value);
      return;
    }
    logger.Warn("Ignoring an unreadable annotation of the pool's Lease",
                {{"annotation", key}, {"error", value.status()}});
  };
  read(harvester::kLeaseActionAnnotation, harvester::ParseLeaseAction, &record.action);
  if (record.action.has_value()) DropImpossibleNames(&*record.action, logger);
  read(harvester::kLeaseBackOffAnnotation, harvester::ParseBackOff, &record.back_off);
  read(harvester::kLeasePolicyAnnotation, harvester::ParsePolicyRecord, &record.policy);
  read(harvester::kLeaseReplacementAnnotation, harvester::ParseStoppedReplacement,
       &record.replacement);
  read(harvester::kLeaseLastErrorAnnotation, harvester::ParseErrorRecord, &record.last_error);
  read(harvester::kLeaseLastEventAnnotation, base::ParseRfc3339, &record.last_event);
  return record;
}

bool MayBeAlive(const kube::Lease& lease) {
  if (lease.holder.empty() || !lease.renew_time.has_value() || !lease.server_time.has_value()) {
    return false;
  }
  const base::Duration age = *lease.server_time - *lease.renew_time;
  return std::chrono::abs(age) < kLeaseAlive + kDateResolution;
}

nlohmann::json NewLease(const PoolKey& key, const std::string& holder, base::WallTime now) {
  kube::Lease lease{.name = harvester::LeaseName(key.pool), .ns = key.ns};
  lease.holder = holder;
  lease.lease_duration_seconds =
      static_cast<int>(std::chrono::duration_cast<std::chrono::seconds>(kLeaseDuration).count());
  lease.renew_time = lease.acquire_time = now;
  return kube::LeaseObject(lease, {{harvester::kManagedByLabel, harvester::kManagedByValue},
                                   {harvester::kPoolLabel, key.pool}});
}

PoolLease::Options PoolLease::OptionsOf(const config::PluginConfig& config, std::string holder) {
  return {.holder = std::move(holder),
          .write_limit = std::min(config.request_timeout, kWriteLimit)};
}

PoolLease::PoolLease(std::shared_ptr<const kube::KubeClient> client, PoolKey key,
                     runtime::Clock& clock, Options options, log::Logger logger)
    : client_(std::move(client)),
      key_(std::move(key)),
      clock_(clock),
      options_(std::move(options)),
      logger_(std::move(logger)),
      permit_(std::make_shared<LeasePermit>(clock, options_.write_limit)) {}

PoolLease::~PoolLease() { StopRenewal(); }

std::shared_ptr<const runtime::WritePermit> PoolLease::permit() const { return permit_; }

bool PoolLease::held() const {
  base::MutexLock lock(mutex_);
  return held_;
}

bool PoolLease::is_known() const {
  base::MutexLock lock(mutex_);
  return known_;
}

PoolRecord PoolLease::record() const {
  base::MutexLock lock(mutex_);
  return record_;
}

absl::StatusOr<std::optional<kube::Lease>> PoolLease::Read(const runtime::Context& context) const {
  auto observed = client_->Get(context, kube::kLeases, key_.ns, harvester::LeaseName(key_.pool));
  // Wider than kube::IsNotFound: the API itself may be missing, which the creation then reports.
  if (absl::IsNotFound(observed.status())) return std::nullopt;
  auto lease = kube::ParseLeaseReply(observed, harvester::LeaseName(key_.pool));
  NH_RETURN_IF_ERROR(WithLeaseRule(lease.status(), key_));
  base::MutexLock lock(mutex_);
  RecordServerTime(*lease);
  return *std::move(lease);
}

absl::Status PoolLease::Refresh(const runtime::Context& context) {
  std::uint64_t holds = 0;
  {
    base::MutexLock lock(mutex_);
    holds = holds_;
  }
  auto lease = Read(context);
  NH_RETURN_IF_ERROR(lease);
  PoolRecord record = lease->has_value() ? ParsePoolRecord(**lease, logger_) : PoolRecord{};
  base::MutexLock lock(mutex_);
  known_ = true;
  // The Lease was acquired meanwhile: this read may be older than the holder's last write.
  if (held_ || holds_ != holds) return absl::OkStatus();
  record_ = std::move(record);
  absent_ = !lease->has_value();
  free_ = absent_ || (*lease)->holder.empty() ? *std::move(lease) : std::nullopt;
  return absl::OkStatus();
}

void PoolLease::SetHeld(const kube::Lease& lease, base::MonoTime sent) {
  PoolRecord record = ParsePoolRecord(lease, logger_);
  permit_->Acquired(sent);
  base::MutexLock lock(mutex_);
  held_ = true;
  known_ = true;
  ++holds_;
  absent_ = false;
  free_.reset();
  RecordReply(lease);
  record_ = std::move(record);
  observed_holder_.reset();
}

void PoolLease::RecordReply(const kube::Lease& lease) {
  resource_version_ = lease.resource_version;
  // Operators may write or remove these annotations while we hold the Lease (rules L10, C15, R5).
  record_.paused = PauseIn(lease);
  record_.nomad_cluster = ClusterIn(lease);
  if (!lease.annotations.contains(harvester::kLeaseReplacementAnnotation)) {
    record_.replacement.reset();
  }
  RecordServerTime(lease);
}

void PoolLease::RecordServerTime(const kube::Lease& lease) const {
  if (!lease.server_time.has_value()) return;
  server_time_ = lease.server_time;
  server_time_at_ = clock_.Now();
}

base::WallTime PoolLease::ServerNow() const {
  if (!server_time_.has_value()) return clock_.WallNow();
  return *server_time_ + (clock_.Now() - server_time_at_);
}

absl::Status PoolLease::Create(const runtime::Context& context) {
  const base::MonoTime sent = clock_.Now();
  const auto created = client_->Create(context, kube::kLeases, key_.ns,
                                       NewLease(key_, options_.holder, clock_.WallNow()));
  if (kube::IsNotFound(created.status())) {
    return base::Annotate(created.status(), "namespace " + key_.ns +
                                                " does not exist: create it, or correct the key "
                                                "namespace");
  }
  const auto held = kube::ParseLeaseReply(created, harvester::LeaseName(key_.pool));
  NH_RETURN_IF_ERROR(WithLeaseRule(held.status(), key_));
  NH_RETURN_IF_ERROR(CheckIsOurs(*held));
  SetHeld(*held, sent);
  return absl::OkStatus();
}

// A webhook may undo the write (rule L2).
absl::Status PoolLease::CheckIsOurs(const kube::Lease& reply) const {
  return reply.holder == options_.holder
             ? absl::OkStatus()
             : kube::WithoutEffect("acquiring the Lease of pool " + key_.ToString() + ": ");
}

absl::Status PoolLease::TakeOver(const runtime::Context& context, const kube::Lease& lease) {
  const base::MonoTime sent = clock_.Now();
  kube::LeaseChange change{.resource_version = lease.resource_version};
  change.holder = options_.holder;
  change.lease_duration_seconds =
      static_cast<int>(std::chrono::duration_cast<std::chrono::seconds>(kLeaseDuration).count());
  change.transitions = lease.transitions + 1;
  {
    base::MutexLock lock(mutex_);
    change.renew_time = change.acquire_time = ServerNow();
  }
  NH_ASSIGN_OR_RETURN(const kube::Lease held, Patch(context, change));
  NH_RETURN_IF_ERROR(CheckIsOurs(held));
  SetHeld(held, sent);
  return absl::OkStatus();
}

absl::Status PoolLease::CheckHolder(const kube::Lease& lease, LeaseUser user, bool first_read) {
  if (lease.holder.empty() || lease.holder == options_.holder) return absl::OkStatus();
  const absl::Status busy(absl::StatusCode::kAborted,
                          "another process acts on pool " + key_.ToString() + ": " + lease.holder);
  const base::MonoTime now = clock_.Now();
  base::MutexLock lock(mutex_);
  const bool moved =
      observed_holder_.has_value() && (observed_holder_->holder != lease.holder ||
                                       observed_holder_->renew_time != lease.renew_time);
  if (!observed_holder_.has_value() || moved) {
    observed_holder_ =
        ObservedHolder{.holder = lease.holder, .renew_time = lease.renew_time, .since = now};
  }
  if (moved && !first_read) return busy;
  // Checked before the age, by which a holder that ended less than five seconds ago may be alive.
  if (now - observed_holder_->since >= kLeaseDuration) return absl::OkStatus();
  if (user == LeaseUser::kScale && first_read && MayBeAlive(lease)) return busy;
  return base::Unavailable("the holder of the pool's Lease has stopped renewing: " + lease.holder);
}

void PoolLease::LogWait(const kube::Lease& lease) const {
  base::WallTime until = clock_.WallNow() + kLeaseDuration;
  {
    base::MutexLock lock(mutex_);
    if (observed_holder_.has_value()) until -= clock_.Now() - observed_holder_->since;
  }
  // The Lease is only read at intervals, so the takeover may be later by one interval.
  options_.on_wait(lease.holder, until + kLookInterval);
}

absl::StatusOr<std::optional<kube::Lease>> PoolLease::WaitUntilFree(const runtime::Context& context,
                                                                    LeaseUser user) {
  {
    base::MutexLock lock(mutex_);
    if (std::exchange(absent_, false)) return std::nullopt;
    if (free_.has_value()) return std::exchange(free_, std::nullopt);
  }
  bool told = options_.on_wait == nullptr;
  for (bool first_read = true;; first_read = false) {
    NH_ASSIGN_OR_RETURN(std::optional<kube::Lease> lease, Read(context));
    if (!lease.has_value()) return lease;
    const absl::Status outcome = CheckHolder(*lease, user, first_read);
    if (outcome.ok()) return lease;
    if (!absl::IsUnavailable(outcome)) return outcome;
    // A holder that has just renewed may be alive; the next read will show.
    if (!told && !MayBeAlive(*lease)) {
      told = true;
      LogWait(*lease);
    }
    NH_RETURN_IF_ERROR(context.Sleep(kLookInterval));
  }
}

absl::Status PoolLease::Acquire(const runtime::Context& context, LeaseUser user,
                                std::function<void()> on_lost) {
  NH_RETURN_IF_ERROR(AcquireLease(context, user));
  StartRenewal(std::move(on_lost));
  return absl::OkStatus();
}

absl::Status PoolLease::AcquireLease(const runtime::Context& context, LeaseUser user) {
  for (int attempt = 1;; ++attempt) {
    NH_ASSIGN_OR_RETURN(const std::optional<kube::Lease> free, WaitUntilFree(context, user));
    absl::Status outcome = free.has_value() ? TakeOver(context, *free) : Create(context);
    // Another process was faster, or our own first attempt took effect, or the Lease was deleted:
    // read it.
    const bool is_outdated = kube::IsConflict(outcome) || kube::IsAlreadyExists(outcome) ||
                             (free.has_value() && absl::IsNotFound(outcome));
    if (!is_outdated) return outcome;
    const absl::Status ended = attempt == 1 ? context.Check() : context.Sleep(kLookInterval);
    if (!ended.ok()) return base::MakeStatus(ended.code(), base::Message(outcome));
  }
}

void PoolLease::StartRenewal(std::function<void()> on_lost) {
  {
    base::MutexLock lock(mutex_);
    on_lost_ = std::move(on_lost);
  }
  renewing_.emplace(runtime::Context::Background(clock_));
  renewal_ =
      clock_.Every(kLeaseRenewal, [this, context = renewing_->context()] { Renew(context); });
}

void PoolLease::EndHold() {
  if (renewing_.has_value()) renewing_->Cancel(runtime::CancelReason::kNone);
  renewal_.reset();  // waits until a renewal under way notices
  permit_->Revoke();
}

void PoolLease::Lose(const std::string& why) {
  std::function<void()> on_lost;
  {
    base::MutexLock lock(mutex_);
    if (!held_) return;
    held_ = false;
    why_lost_ = why;
    on_lost = std::exchange(on_lost_, nullptr);
  }
  permit_->Revoke();
  logger_.Warn("Lost the pool's Lease: nothing more is written; the next Status continues the work",
               {{"why", why}});
  if (on_lost) on_lost();
}

void PoolLease::Renew(const runtime::Context& context) {
  // Resolves a conflict with our own Store, or with a renewal whose reply was lost, immediately:
  // the next tick might be too late for a waiting write.
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (!held()) return;
    if (permit_->HasRunOut()) {
      Lose("it could not be renewed for " + base::FormatGoDuration(kLeaseDuration) + ": " +
           RenewalProblem());
      return;
    }
    if (!RenewOnce(context.WithTimeout(options_.write_limit))) return;
  }
}

std::string PoolLease::why_lost() const {
  const base::MutexLock lock(mutex_);
  return why_lost_;
}

std::string PoolLease::RenewalProblem() const {
  const base::MutexLock lock(mutex_);
  return renewal_problem_.ok() ? "no answer came" : base::Message(renewal_problem_);
}

bool PoolLease::RenewOnce(const runtime::Context& context) {
  const base::MonoTime sent = clock_.Now();
  kube::LeaseChange change;
  {
    base::MutexLock lock(mutex_);
    change.resource_version = resource_version_;
    change.renew_time = ServerNow();
  }
  auto renewed = Patch(context, change);
  if (renewed.ok() && renewed->holder != options_.holder) {
    Lose("another process holds it");
    return false;
  }
  // A webhook or a program may undo the renewal, so that others take us for dead. A Lease stores
  // microseconds.
  if (renewed.ok() && renewed->renew_time.value_or(base::WallTime{}) <
                          *change.renew_time - std::chrono::microseconds(1)) {
    renewed = kube::WithoutEffect("renewing the Lease of pool " + key_.ToString() + ": ");
  }
  if (renewed.ok()) {
    permit_->Renewed(sent);
    base::MutexLock lock(mutex_);
    renewal_problem_ = absl::OkStatus();
    RecordReply(*renewed);
    return false;
  }
  if (absl::IsCancelled(renewed.status())) return false;  // the hold has ended
  if (!kube::IsConflict(renewed.status()) && !kube::IsNotFound(renewed.status())) {
    bool is_first = false;
    {
      base::MutexLock lock(mutex_);
      is_first = std::exchange(renewal_problem_, renewed.status()).ok();
    }
    logger_.Log(is_first ? log::Level::kWarn : log::Level::kDebug,
                "Could not renew the pool's Lease; the action ends if that lasts",
                {{"longest", base::FormatGoDuration(kLeaseDuration)}, {"error", renewed.status()}});
    return false;
  }
  auto lease = Read(context);
  if (!lease.ok()) return false;
  if (!lease->has_value() || (*lease)->holder != options_.holder) {
    Lose(!lease->has_value() ? "it was deleted" : "another process holds it");
    return false;
  }
  base::MutexLock lock(mutex_);
  RecordReply(**lease);
  return true;
}

absl::Status PoolLease::Store(const runtime::Context& context, const PoolRecord& record,
                              const std::string& nomad_cluster) {
  kube::LeaseChange change;
  {
    base::MutexLock lock(mutex_);
    if (!held_) return base::Unavailable("the pool's Lease is not ours: its record is not written");
    change.resource_version = resource_version_;
    change.annotations = RecordAnnotations(record, record_);
  }
  if (!nomad_cluster.empty()) {
    change.annotations[harvester::kNomadClusterAnnotation] = nomad_cluster;
  }
  NH_ASSIGN_OR_RETURN(const kube::Lease stored,
                      PatchOurs(context.WithWritePermit(permit_), std::move(change)));
  base::MutexLock lock(mutex_);
  record_ = record;
  RecordReply(stored);
  return absl::OkStatus();
}

absl::StatusOr<kube::Lease> PoolLease::Patch(const runtime::Context& context,
                                             const kube::LeaseChange& change) const {
  const std::string name = harvester::LeaseName(key_.pool);
  auto patched = kube::ParseLeaseReply(
      client_->MergePatch(context, kube::kLeases, key_.ns, name, kube::LeasePatch(change)), name);
  if (!patched.ok()) return WithLeaseRule(patched.status(), key_);
  return patched;
}

absl::StatusOr<kube::Lease> PoolLease::PatchOurs(const runtime::Context& context,
                                                 kube::LeaseChange change) const {
  for (int attempt = 1;; ++attempt) {
    auto patched = Patch(context, change);
    if (!kube::IsConflict(patched.status()) || attempt == kPatchAttempts) return patched;
    NH_ASSIGN_OR_RETURN(std::optional<kube::Lease> lease, Read(context));
    // A release whose reply was lost has taken effect.
    if (lease.has_value() && change.holder == "" && IsDone(change, *lease)) return *lease;
    if (!lease.has_value() || lease->holder != options_.holder) {
      return base::Unavailable("another process has taken the pool's Lease");
    }
    change.resource_version = std::move(lease->resource_version);
  }
}

void PoolLease::StopRenewal() {
  EndHold();
  base::MutexLock lock(mutex_);
  held_ = false;
  on_lost_ = nullptr;
}

bool PoolLease::Release(const runtime::Context& context, const PoolRecord* last) {
  EndHold();
  kube::LeaseChange change;
  std::map<std::string, std::optional<std::string>> annotations;
  {
    base::MutexLock lock(mutex_);
    const bool was_held = std::exchange(held_, false);
    ++holds_;
    on_lost_ = nullptr;
    if (!was_held) return last == nullptr;
    change.resource_version = resource_version_;
    if (last != nullptr) annotations = RecordAnnotations(*last, record_);
  }
  const bool releases = !permit_->MayTakeEffect();
  if (!releases) {
    logger_.Debug("Not releasing the pool's Lease, because a write was abandoned; it will expire");
    if (last == nullptr) return true;
  }
  if (releases) change.holder = "";
  if (last != nullptr) {
    kube::LeaseChange both = change;
    both.annotations = std::move(annotations);
    const auto patched = PatchOurs(context, std::move(both));
    if (patched.ok()) {
      RecordReleased(*patched, releases, last);
      return true;
    }
    logger_.Warn("Could not close the action on the pool's Lease; the background closes it",
                 {{"error", patched.status()}});
    if (!releases || context.cancel_reason() == runtime::CancelReason::kClient) return false;
  }
  const auto released = PatchOurs(
      last == nullptr ? context : runtime::Context::Background(clock_).WithTimeout(kPlainRelease),
      std::move(change));
  if (released.ok()) {
    RecordReleased(*released, releases, nullptr);
  } else {
    logger_.Debug("Could not release the pool's Lease; it will expire",
                  {{"error", released.status()}});
  }
  return last == nullptr;
}

void PoolLease::RecordReleased(const kube::Lease& lease, bool is_free, const PoolRecord* record) {
  base::MutexLock lock(mutex_);
  if (record != nullptr) record_ = *record;
  RecordReply(lease);
  if (is_free) free_ = lease;
}

}  // namespace nomad_harvester::scaling
