// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/scaling/service.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/scaling/lease_hold.h"
#include "nomad_harvester/scaling/pool_gate.h"
#include "nomad_harvester/scaling/status_report.h"

#include "nlohmann/json.hpp"
#include "read_only.h"
#include "resumption.h"
#include "scale_call.h"

namespace nomad_harvester::scaling {
namespace {

using runtime::CancelReason;
using runtime::Context;

// Status replies this long before its deadline, so that the reply arrives in time.
constexpr base::Duration kStatusMargin = std::chrono::milliseconds(250);
constexpr base::Duration kStatusBudget = std::chrono::seconds(7);

// The background tasks of a service, which may be destroyed while some of them wait in a queue.
// Thread-safe.
class BackgroundTasks {
 public:
  // False: the service is gone, or is about to be. After true, End must follow.
  bool Begin() {
    base::MutexLock lock(mutex_);
    if (closed_) return false;
    ++running_;
    return true;
  }
  void End() {
    {
      base::MutexLock lock(mutex_);
      --running_;
    }
    changed_.NotifyAll();
  }
  // No task begins from now on; waits for those that run, whose context must be cancelled.
  void Close() {
    base::MutexLock lock(mutex_);
    closed_ = true;
    changed_.Wait(mutex_, {}, [this]() NH_REQUIRES(mutex_) { return running_ == 0; });
  }

 private:
  base::Mutex mutex_;
  base::CondVar changed_;
  bool closed_ NH_GUARDED_BY(mutex_) = false;
  int running_ NH_GUARDED_BY(mutex_) = 0;
};

// When the background tries again what it could not finish: one round a minute at most, one in ten
// minutes after an hour (rule L7). New work does not wait.
class Rounds {
 public:
  // Whether a round may begin for this work.
  bool MayBegin(const std::string& work, base::MonoTime now) const {
    return !next_.has_value() || work != work_ || now >= *next_;
  }
  void Unfinished(std::string work, base::MonoTime now) {
    if (!next_.has_value()) since_ = now;
    work_ = std::move(work);
    next_ = now + std::clamp<base::Duration>((now - since_) / 6, std::chrono::minutes(1),
                                             std::chrono::minutes(10));
  }
  void Finished() { next_.reset(); }

 private:
  std::string work_;
  base::MonoTime since_{};
  std::optional<base::MonoTime> next_;
};

// State of a pool that outlives a SetConfig: its gate, and what was observed.
struct Pool {
  Pool(PoolKey k, runtime::Random& random) : key(std::move(k)), troubles(random) {}
  const PoolKey key;
  PoolGate gate;
  ObserverMemory memory;
  PoolTroubles troubles;  // of the loop that is inside the gate

  base::Mutex mutex;
  ScaleMemory scale NH_GUARDED_BY(mutex);
  std::optional<config::PoolPolicy> policy NH_GUARDED_BY(mutex);
  // A resumption has finished since the process started and since the last Scale that left work.
  bool inspected NH_GUARDED_BY(mutex) = false;
  std::int64_t last_count NH_GUARDED_BY(mutex) = 0;
  std::string last_reason NH_GUARDED_BY(mutex);
  std::string last_warning NH_GUARDED_BY(mutex);
  std::set<std::string> warned NH_GUARDED_BY(mutex);
  std::optional<base::MonoTime> mass_loss_since NH_GUARDED_BY(mutex);
  std::optional<base::WallTime> last_event NH_GUARDED_BY(mutex);
  // A resumption is submitted and has not begun.
  bool queued NH_GUARDED_BY(mutex) = false;
  // What could not be finished is tried in rounds (rule L7).
  Rounds rounds NH_GUARDED_BY(mutex);
  std::int64_t leftovers NH_GUARDED_BY(mutex) = 0;  // VMs that are gone and left something
};

// What one configuration has for one pool.
struct PoolAccess {
  Clients clients;  // with a max_concurrency of its own
  std::unique_ptr<PoolLease> lease;
};

// One configuration.
struct Session {
  Clients clients;
  nodepool::FullNodeCache nodes;  // of all pools
  base::Mutex mutex;
  std::map<PoolKey, std::shared_ptr<PoolAccess>> pools NH_GUARDED_BY(mutex);
};

// Facts about a finished Scale, for the log.
struct ScaleFacts {
  PoolKey pool;
  std::string policy_id;
  std::string action_id;
  std::optional<ScaleRange> range;
  bool acted = false;  // its outcome is logged
};

struct ActionMeta {
  bool dry_run = false;
  std::optional<std::int64_t> dry_run_count;
  std::string policy_id;
};

// The members are defined in hashicorp/nomad-autoscaler:sdk/strategy.go. Unreadable meta is an
// error, as in the Go plugins.
absl::StatusOr<ActionMeta> ParseMeta(const std::string& text) {
  ActionMeta meta;
  if (text.empty()) return meta;
  NH_ASSIGN_OR_RETURN(const nlohmann::json json, base::ParseJson(text, "the action's meta"));
  meta.dry_run = base::GetBool(json, "nomad_autoscaler.dry_run");
  if (const nlohmann::json* count = base::FindMember(json, "nomad_autoscaler.dry_run.count");
      count != nullptr && count->is_number()) {
    meta.dry_run_count = count->is_number_float() ? static_cast<std::int64_t>(count->get<double>())
                                                  : count->get<std::int64_t>();
  }
  meta.policy_id = base::GetString(json, "nomad_policy_id");
  return meta;
}

class Service final : public TargetService {
 public:
  explicit Service(ServiceOptions options)
      : options_(std::move(options)),
        root_(Context::Background(*options_.clock)),
        read_only_(std::make_shared<ReadOnly>()) {}
  ~Service() override {
    root_.Cancel(CancelReason::kShutdown);
    tasks_->Close();
  }

  absl::Status SetConfig(const StringMap& values) override;
  absl::StatusOr<TargetStatus> Status(const Context& context, const StringMap& policy) override;
  absl::Status Scale(const Context& context, const ScaleAction& action,
                     const StringMap& policy) override;
  void Stop(const Context& context) override;

 private:
  absl::StatusOr<std::shared_ptr<Session>> CurrentSession();
  std::shared_ptr<Pool> FindPool(const PoolKey& key);
  std::unique_ptr<PoolLease> MakeLease(const Session& session, const Pool& pool) const;
  std::shared_ptr<PoolAccess> AccessTo(Session& session, const Pool& pool);
  PoolDependencies DependenciesFor(Session& session, Pool& pool, const Clients& clients,
                                   PoolLease& lease, const harvester::VmStore& vms);
  void WarnOnce(Pool& pool, const std::vector<std::string>& warnings);
  absl::StatusOr<std::string> OwnNode(const Context& context, const Session& session);
  void SetOwnNode(const Context& context, const Session& session, Pool& pool,
                  ScaleRequest* request);

  absl::StatusOr<PoolSnapshot> ObserveLists(const Context& context, Session& session, Pool& pool,
                                            const config::PoolPolicy& policy);
  TargetStatus Unready(Pool& pool, const std::string& reason);
  void NoteReadiness(Pool& pool, const StatusReport& report);
  StatusInputs InputsFor(Session& session, Pool& pool, const PoolSnapshot& snapshot);
  void RefreshPause(const Context& context, Session& session, const Pool& pool, base::WallTime now);
  void WakeResumption(const std::shared_ptr<Session>& session, const PoolSnapshot& snapshot);
  void StartResumption(const std::shared_ptr<Session>& session, const std::shared_ptr<Pool>& pool,
                       std::string work);
  void RunResumption(Session& session, Pool& pool, const std::string& work);
  void Resume(Session& session, Pool& pool, const Context& context, const std::string& work);

  absl::Status TryScale(const Context& context, const ScaleAction& action, const StringMap& values,
                        ScaleFacts* facts);
  absl::Status ScalePool(const Context& context, const std::shared_ptr<Session>& session,
                         Pool& pool, const config::PoolPolicy& policy, ScaleRequest request,
                         ScaleFacts* facts);
  void NoteRefusal(const ScaleAction& action, const ScaleFacts& facts, const absl::Status& outcome);

  const ServiceOptions options_;
  const runtime::CancelSource root_;
  const std::shared_ptr<const runtime::WritePermit> read_only_;
  const std::shared_ptr<BackgroundTasks> tasks_ = std::make_shared<BackgroundTasks>();

  base::Mutex mutex_;
  std::shared_ptr<Session> session_ NH_GUARDED_BY(mutex_);
  std::map<PoolKey, std::shared_ptr<Pool>> pools_ NH_GUARDED_BY(mutex_);
  std::optional<std::string> own_node_ NH_GUARDED_BY(mutex_);
  // By pool: the last refusal of a Scale, kept until a Scale is not refused.
  std::map<PoolKey, std::string> refusals_ NH_GUARDED_BY(mutex_);
};

absl::Status Service::SetConfig(const StringMap& values) {
  NH_ASSIGN_OR_RETURN(
      config::PluginConfig parsed,
      config::ParsePluginConfig(values, options_.environment, options_.template_environment));
  auto config = std::make_shared<const config::PluginConfig>(std::move(parsed));
  NH_ASSIGN_OR_RETURN(RawTransports transports, options_.transports(*config));
  std::set<std::string> warnings(config->warnings.begin(), config->warnings.end());
  warnings.insert(transports.warnings.begin(), transports.warnings.end());
  for (const std::string& warning : warnings) options_.logger.Warn(warning);
  if (log::Level level{}; options_.set_log_level && log::ParseLevel(config->log_level, &level)) {
    options_.set_log_level(level);
  }
  auto session = std::make_shared<Session>();
  session->clients = MakeClients(config, std::move(transports), options_.random, options_.logger);
  options_.logger.Info("Configured", {{"harvester_url", config->harvester.url},
                                      {"nomad_address", config->nomad.address},
                                      {"nomad_region", config->nomad.region}});
  base::MutexLock lock(mutex_);
  session_ = std::move(session);
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<Session>> Service::CurrentSession() {
  NH_RETURN_IF_ERROR(root_.context().Check());
  base::MutexLock lock(mutex_);
  if (session_ == nullptr) {
    return base::FailedPrecondition("the plugin has not been configured yet (SetConfig)");
  }
  return session_;
}

std::shared_ptr<Pool> Service::FindPool(const PoolKey& key) {
  base::MutexLock lock(mutex_);
  std::shared_ptr<Pool>& pool = pools_[key];
  if (pool == nullptr) pool = std::make_shared<Pool>(key, *options_.random);
  return pool;
}

std::unique_ptr<PoolLease> Service::MakeLease(const Session& session, const Pool& pool) const {
  return std::make_unique<PoolLease>(session.clients.kube_urgent, pool.key, *options_.clock,
                                     PoolLease::OptionsOf(*session.clients.config, options_.holder),
                                     options_.logger.With({{"pool", pool.key.ToString()}}));
}

std::shared_ptr<PoolAccess> Service::AccessTo(Session& session, const Pool& pool) {
  base::MutexLock lock(session.mutex);
  std::shared_ptr<PoolAccess>& access = session.pools[pool.key];
  if (access == nullptr) {
    access = std::make_shared<PoolAccess>();
    access->clients = ClientsForPool(session.clients);
    access->lease = MakeLease(session, pool);
  }
  return access;
}

PoolDependencies Service::DependenciesFor(Session& session, Pool& pool, const Clients& clients,
                                          PoolLease& lease, const harvester::VmStore& vms) {
  return {.key = pool.key,
          .clients = clients,
          .vms = vms,
          .nodes = session.nodes,
          .memory = pool.memory,
          .troubles = pool.troubles,
          .lease = lease,
          .clock = *options_.clock,
          .random = *options_.random,
          .executor = *options_.foreground,
          .logger = options_.logger.With({{"pool", pool.key.ToString()}})};
}

void Service::WarnOnce(Pool& pool, const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) {
    {
      base::MutexLock lock(pool.mutex);
      if (!pool.warned.insert(warning).second) continue;
    }
    options_.logger.Warn(warning, {{"pool", pool.key.ToString()}});
  }
}

// The autoscaler may run on a node of the pool that it scales (rule C7). Its allocation may not be
// known right after the start, so it is queried until it is.
absl::StatusOr<std::string> Service::OwnNode(const Context& context, const Session& session) {
  const std::string& allocation = session.clients.config->own_allocation_id;
  if (allocation.empty()) return std::string();
  {
    base::MutexLock lock(mutex_);
    if (own_node_.has_value()) return *own_node_;
  }
  auto node = session.clients.nomad->NodeOfAllocation(context, allocation);
  if (absl::IsNotFound(node.status())) {
    // A token that sees every namespace would see it: it is an allocation of another cluster.
    const auto read_job = session.clients.nomad->VerifyReadJob(context);
    if (read_job.ok() && *read_job == nomad::ReadJob::kEverywhere) return std::string();
  }
  if (!node.ok()) {
    return base::Annotate(node.status(), "the autoscaler's own node cannot be found (allocation " +
                                             allocation + "), and it must never be removed");
  }
  base::MutexLock lock(mutex_);
  own_node_ = *node;
  return node;
}

void Service::SetOwnNode(const Context& context, const Session& session, Pool& pool,
                         ScaleRequest* request) {
  const auto own = OwnNode(context, session);
  request->own_node_problem = own.status();
  if (own.ok()) {
    request->own_node_id = *own;
  } else if (!context.Done()) {
    WarnOnce(pool, {base::Message(own.status())});
  }
}

absl::StatusOr<PoolSnapshot> Service::ObserveLists(const Context& context, Session& session,
                                                   Pool& pool, const config::PoolPolicy& policy) {
  Look look = LookFor(session.clients.config->nomad.region, policy);
  const harvester::VmStore vms(session.clients.kube_urgent, pool.key.ns);
  absl::StatusOr<harvester::Timestamped<std::vector<harvester::VirtualMachine>>> seen =
      base::Unavailable("not read");
  absl::StatusOr<nomad::Indexed<std::vector<nomad::Node>>> nodes = base::Unavailable("not read");
  const auto results = runtime::ForEachBounded(
      context, *options_.foreground, 2, 2, [&](std::size_t i) -> absl::Status {
        if (i == 0) {
          seen = vms.ListManaged(context);
          return seen.status();
        }
        nodes = session.clients.nomad_urgent->ListNodes(context);
        return nodes.status();
      });
  if (!results[0].ok()) return base::Annotate(results[0], "Harvester cannot be read");
  look.now = seen->server_time.value_or(options_.clock->WallNow());
  SetVms(std::move(seen->value), &look);
  look.nomad_readable = results[1].ok();
  if (results[1].ok()) {
    look.nomad_index = nodes->index;
    look.nodes = std::move(nodes->value);
    for (nomad::Node& node : look.nodes) session.nodes.Complete(&node);
  } else {
    look.nomad_problem = base::Message(results[1]);
  }
  CheckIndex(&look);
  Link(&look);
  pool.memory.Apply(options_.clock->Now(), &look);
  return PoolSnapshot{
      .key = pool.key, .seen = std::make_shared<const Snapshot>(std::move(look)), .policy = policy};
}

TargetStatus Service::Unready(Pool& pool, const std::string& reason) {
  StatusReport report;
  report.reason = reason;
  {
    base::MutexLock lock(pool.mutex);
    report.status.count = pool.last_count;
  }
  NoteReadiness(pool, report);
  return report.status;
}

// One WARN per change of the reason, not one per tick.
void Service::NoteReadiness(Pool& pool, const StatusReport& report) {
  bool reason_changed = false;
  bool warning_changed = false;
  {
    base::MutexLock lock(pool.mutex);
    reason_changed = std::exchange(pool.last_reason, report.reason) != report.reason;
    warning_changed = std::exchange(pool.last_warning, report.warning) != report.warning;
    if (report.status.ready || !report.status.meta.empty()) pool.last_count = report.status.count;
  }
  const log::Logger logger = options_.logger.With({{"pool", pool.key.ToString()}});
  if (reason_changed && !report.reason.empty()) {
    // An open Scale is what the agent itself requested.
    logger.Log(report.expected ? log::Level::kInfo : log::Level::kWarn, "Not ready",
               {{"why", report.reason}, {"count", report.status.count}});
  } else if (reason_changed) {
    logger.Info("Ready", {{"count", report.status.count}});
  }
  if (warning_changed && !report.warning.empty()) {
    logger.Warn("VMs of the pool need attention", {{"what", report.warning}});
  }
}

StatusInputs Service::InputsFor(Session& session, Pool& pool, const PoolSnapshot& snapshot) {
  StatusInputs inputs;
  inputs.scale_open = pool.gate.ScaleIsOpen();
  const PoolRecord record = AccessTo(session, pool)->lease->record();
  const std::optional<base::WallTime>& stored = record.last_event;
  inputs.paused = record.paused;
  const bool alarming = FindMassLoss(snapshot).alarming;
  const base::MonoTime now = options_.clock->Now();
  base::MutexLock lock(pool.mutex);
  inputs.template_hash = pool.scale.template_hash;
  inputs.leftovers = pool.leftovers;
  // Kept in the process, too: a new configuration has not read the Lease.
  if (stored.has_value() && (!pool.last_event.has_value() || *stored > *pool.last_event)) {
    pool.last_event = stored;
  }
  inputs.last_event = pool.last_event;
  if (!alarming) {
    if (snapshot.look().nomad_readable) pool.mass_loss_since.reset();
  } else if (!pool.mass_loss_since.has_value()) {
    pool.mass_loss_since = now;
  }
  if (pool.mass_loss_since.has_value()) inputs.mass_loss_for = now - *pool.mass_loss_since;
  pool.scale.mass_loss_over = inputs.mass_loss_for >= kMassLossTimeout;
  return inputs;
}

absl::StatusOr<TargetStatus> Service::Status(const Context& context, const StringMap& values) {
  NH_ASSIGN_OR_RETURN(const config::PoolPolicy policy, config::ParsePoolPolicy(values));
  NH_ASSIGN_OR_RETURN(const std::shared_ptr<Session> session, CurrentSession());
  const std::shared_ptr<Pool> pool = FindPool({.ns = policy.ns, .pool = policy.pool});
  WarnOnce(*pool, policy.warnings);
  {
    base::MutexLock lock(pool->mutex);
    pool->policy = policy;
  }
  base::Duration budget =
      std::min(context.Remaining(), policy.grpc_timeout.value_or(kStatusBudget));
  budget -= std::min(kStatusMargin, budget / 4);
  const Context limited = context.WithTimeout(budget).WithWritePermit(read_only_);
  auto snapshot = ObserveLists(limited, *session, *pool, policy);
  if (!snapshot.ok()) {
    NH_RETURN_IF_ERROR(root_.context().Check());
    return Unready(*pool, base::Message(snapshot.status()));
  }
  RefreshPause(limited, *session, *pool, snapshot->now());
  const StatusReport report = ReportStatus(*snapshot, InputsFor(*session, *pool, *snapshot));
  NoteReadiness(*pool, report);
  WakeResumption(session, *snapshot);
  return report.status;
}

// Every pool of the namespace that owns a VM, or the node of a VM that is gone.
std::set<std::string> PoolsIn(const PoolSnapshot& snapshot) {
  std::set<std::string> names = {snapshot.key.pool};
  for (const VmView& view : snapshot.look().vms) {
    if (view.member) names.insert(view.vm.pool);
  }
  const std::string ns = snapshot.key.ns + "/";
  for (const NodeOfGoneVm& gone : NodesOfGoneVms(snapshot)) {
    if (gone.mark->pool.starts_with(ns)) names.insert(gone.mark->pool.substr(ns.size()));
  }
  return names;
}

// What there is to do, for Rounds: the same text as long as nothing changes.
std::string WorkOf(const Decisions& decisions) {
  std::string work;
  for (const auto& [view, step] : decisions.all()) {
    if (IsAct(step.kind) || view->vm.has_mark) {
      work += view->vm.uid + " " + std::string(RowName(step.row)) + "\n";
    }
  }
  for (const NodeOfGoneVm& gone : decisions.to_purge()) work += gone.node->id + "\n";
  return work;
}

// While the pool is known to be paused, whether it still is.
void Service::RefreshPause(const Context& context, Session& session, const Pool& pool,
                           base::WallTime now) {
  const std::shared_ptr<PoolAccess> access = AccessTo(session, pool);
  if (!access->lease->record().paused.HoldsAt(now) || access->lease->held()) return;
  const absl::Status read = access->lease->Refresh(context);
  if (read.ok()) return;
  options_.logger.Debug("Could not read the pool's Lease",
                        {{"pool", pool.key.ToString()}, {"error", read}});
}

void Service::WakeResumption(const std::shared_ptr<Session>& session,
                             const PoolSnapshot& snapshot) {
  for (const std::string& name : PoolsIn(snapshot)) {
    const std::shared_ptr<Pool> pool = FindPool({.ns = snapshot.key.ns, .pool = name});
    if (pool->gate.Busy()) continue;
    PoolSnapshot own{.key = pool->key, .seen = snapshot.seen};
    own.action = AccessTo(*session, *pool)->lease->record().action;
    bool unfinished = false;
    {
      base::MutexLock lock(pool->mutex);
      own.policy = pool->policy;
      unfinished = !pool->inspected || pool->leftovers > 0;
    }
    const Decisions decisions(std::move(own));
    if (!unfinished && !NeedsResumption(decisions)) continue;
    std::string work = WorkOf(decisions);
    {
      base::MutexLock lock(pool->mutex);
      if (pool->queued || !pool->rounds.MayBegin(work, options_.clock->Now())) continue;
      pool->queued = true;
    }
    StartResumption(session, pool, std::move(work));
  }
}

// The gate is entered when the task begins: one that waits in the queue holds up no Scale.
void Service::StartResumption(const std::shared_ptr<Session>& session,
                              const std::shared_ptr<Pool>& pool, std::string work) {
  const absl::Status submitted =
      options_.background->Submit([this, tasks = tasks_, session, pool, work = std::move(work)] {
        if (!tasks->Begin()) return;
        RunResumption(*session, *pool, work);
        tasks->End();
      });
  if (submitted.ok()) return;
  options_.logger.Debug("The queue for background work is full; the next Status tries again",
                        {{"pool", pool->key.ToString()}, {"error", submitted}});
  base::MutexLock lock(pool->mutex);
  pool->queued = false;
}

void Service::RunResumption(Session& session, Pool& pool, const std::string& work) {
  {
    base::MutexLock lock(pool.mutex);
    pool.queued = false;
  }
  const std::unique_ptr<PoolGate::Guard> guard = pool.gate.EnterForResumption(root_.context());
  if (guard != nullptr) Resume(session, pool, guard->context(), work);
}

void Service::Resume(Session& session, Pool& pool, const Context& context,
                     const std::string& work) {
  const std::shared_ptr<PoolAccess> access = AccessTo(session, pool);
  const log::Logger logger = options_.logger.With({{"pool", pool.key.ToString()}});
  std::optional<config::PoolPolicy> policy;
  {
    base::MutexLock lock(pool.mutex);
    policy = pool.policy;
  }
  const harvester::VmStore vms(access->clients.kube, pool.key.ns);
  const Resumed resumed = ResumePool(
      context, DependenciesFor(session, pool, access->clients, *access->lease, vms), policy);
  if (!resumed.lease.ok()) {
    logger.Debug("Background work is waiting for the pool's Lease", {{"error", resumed.lease}});
    base::MutexLock lock(pool.mutex);
    if (!context.Done()) pool.rounds.Unfinished(work, options_.clock->Now());
    return;
  }
  // A Scale that takes over is routine.
  const bool routine = resumed.outcome.ok() || resumed.interrupted;
  logger.Log(routine ? log::Level::kDebug : log::Level::kInfo, "Background work ended",
             {{"outcome", resumed.outcome}});
  base::MutexLock lock(pool.mutex);
  pool.leftovers = static_cast<std::int64_t>(pool.troubles.leftovers.size());
  if (resumed.last_event.has_value()) pool.last_event = resumed.last_event;
  pool.inspected = resumed.outcome.ok();
  if (resumed.outcome.ok()) {
    pool.rounds.Finished();
  } else if (!resumed.interrupted) {
    pool.rounds.Unfinished(work, options_.clock->Now());
  }
}

absl::Status Service::Scale(const Context& context, const ScaleAction& action,
                            const StringMap& values) {
  ScaleFacts facts;
  absl::Status outcome = TryScale(context, action, values, &facts);
  NoteRefusal(action, facts, outcome);
  return outcome;
}

// One WARN per change: the agent repeats a refused Scale at every tick.
void Service::NoteRefusal(const ScaleAction& action, const ScaleFacts& facts,
                          const absl::Status& outcome) {
  // A busy pool and a cancelled call are not refusals, and do not end one.
  if (absl::IsAborted(outcome) || absl::IsCancelled(outcome)) return;
  bool changed = false;
  {
    base::MutexLock lock(mutex_);
    if (outcome.ok() || facts.acted) {
      refusals_.erase(facts.pool);
      return;
    }
    std::string text = outcome.ToString();
    changed = std::exchange(refusals_[facts.pool], text) != text;
  }
  std::vector<log::Field> fields = {{"pool", facts.pool.ToString()},
                                    {"policy_id", facts.policy_id},
                                    {"reason", action.reason},
                                    {"error", outcome}};
  if (!facts.action_id.empty()) fields.emplace_back("action_id", facts.action_id);
  if (facts.range.has_value()) {
    fields.emplace_back("from", facts.range->from);
    fields.emplace_back("to", facts.range->to);
  }
  options_.logger.Log(changed ? log::Level::kWarn : log::Level::kInfo, "Scale refused", fields);
}

absl::Status Service::TryScale(const Context& context, const ScaleAction& action,
                               const StringMap& values, ScaleFacts* facts) {
  // A policy that cannot be parsed may still name its pool.
  facts->pool.ns = config::PoolPolicy().ns;
  if (const auto ns = values.find("namespace"); ns != values.end()) facts->pool.ns = ns->second;
  if (const auto name = values.find("node_group_name"); name != values.end()) {
    facts->pool.pool = name->second;
  }
  auto meta = ParseMeta(action.meta_json);
  if (meta.ok()) facts->policy_id = meta->policy_id;
  NH_ASSIGN_OR_RETURN(const config::PoolPolicy policy, config::ParsePoolPolicy(values));
  facts->pool = {.ns = policy.ns, .pool = policy.pool};
  NH_RETURN_IF_ERROR(meta);
  NH_ASSIGN_OR_RETURN(const std::shared_ptr<Session> session, CurrentSession());
  const std::shared_ptr<Pool> pool = FindPool({.ns = policy.ns, .pool = policy.pool});
  WarnOnce(*pool, policy.warnings);
  {
    base::MutexLock lock(pool->mutex);
    pool->policy = policy;
  }
  ScaleRequest request{.count = action.count,
                       .dry_run = meta->dry_run || policy.dry_run || action.count == -1,
                       .reason = action.reason,
                       .policy_id = meta->policy_id};
  if (request.dry_run) {
    if (!meta->dry_run_count.has_value() && action.count < 0) {
      options_.logger.Info("Dry run without a desired count: nothing to plan",
                           {{"pool", pool->key.ToString()}, {"reason", action.reason}});
      return absl::OkStatus();
    }
    request.count = meta->dry_run_count.value_or(action.count);
  }
  if (request.count < 0) {
    return base::InvalidArgument("count " + std::to_string(request.count) + " is negative");
  }
  return ScalePool(context, session, *pool, policy, std::move(request), facts);
}

absl::Status Service::ScalePool(const Context& context, const std::shared_ptr<Session>& session,
                                Pool& pool, const config::PoolPolicy& policy, ScaleRequest request,
                                ScaleFacts* facts) {
  const Context limited = context.WithTimeout(policy.scale_timeout);
  const std::shared_ptr<PoolAccess> access = AccessTo(*session, pool);
  const harvester::VmStore vms(access->clients.kube, pool.key.ns);
  ScaleMemory memory;
  {
    base::MutexLock lock(pool.mutex);
    memory = pool.scale;
  }
  if (request.dry_run) {
    const Context reading = limited.WithWritePermit(read_only_);
    SetOwnNode(reading, *session, pool, &request);
    // The cached Lease may be older than what another process wrote to it, and a Scale that is open
    // in this process must not be disturbed.
    const std::unique_ptr<PoolLease> inspected = MakeLease(*session, pool);
    NH_RETURN_IF_ERROR(inspected->Refresh(reading));
    ScaleCall call(DependenciesFor(*session, pool, access->clients, *inspected, vms), policy,
                   std::move(request), &memory);
    absl::Status outcome = call.DryRun(reading);
    facts->range = call.range();
    return outcome;
  }
  NH_ASSIGN_OR_RETURN(const std::unique_ptr<PoolGate::Guard> guard,
                      pool.gate.EnterForScale(limited));
  SetOwnNode(guard->context(), *session, pool, &request);
  NH_ASSIGN_OR_RETURN(const std::unique_ptr<LeaseHold> hold,
                      LeaseHold::Acquire(*access->lease, guard->context(), LeaseUser::kScale));
  ScaleCall call(DependenciesFor(*session, pool, access->clients, *access->lease, vms), policy,
                 std::move(request), &memory);
  absl::Status outcome = call.Run(hold->context());
  facts->action_id = call.action_id();
  facts->range = call.range();
  facts->acted = call.acted();
  if (hold->context().cancel_reason() == CancelReason::kLeaseLost) {
    outcome = base::Unavailable("the pool's Lease was lost: " + base::Message(outcome));
  }
  {
    base::MutexLock lock(pool.mutex);
    pool.scale = memory;
    if (call.leaves_work()) {
      pool.inspected = false;
      pool.rounds.Finished();
    }
    pool.leftovers = static_cast<std::int64_t>(pool.troubles.leftovers.size());
    if (call.last_event().has_value()) pool.last_event = call.last_event();
  }
  hold->Release();
  return outcome;
}

void Service::Stop(const Context& context) {
  root_.Cancel(CancelReason::kShutdown);
  std::vector<std::shared_ptr<Pool>> pools;
  {
    base::MutexLock lock(mutex_);
    for (const auto& [key, pool] : pools_) pools.push_back(pool);
  }
  for (const std::shared_ptr<Pool>& pool : pools) pool->gate.Cancel(CancelReason::kShutdown);
  for (const std::shared_ptr<Pool>& pool : pools) {
    if (!pool->gate.WaitUntilIdle(context)) return;
  }
}

}  // namespace

std::unique_ptr<TargetService> MakeTargetService(ServiceOptions options) {
  return std::make_unique<Service>(std::move(options));
}

}  // namespace nomad_harvester::scaling
