// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/scaling/service.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "nomad_harvester/base/file.h"
#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/kube/error.h"
#include "nomad_harvester/nomad/error.h"
#include "nomad_harvester/scaling/lease_hold.h"
#include "nomad_harvester/scaling/replacement.h"
#include "nomad_harvester/scaling/status_report.h"
#include "nomad_harvester/scaling/template_check.h"

#include "drivers/background.h"
#include "drivers/scale_call.h"
#include "drivers/session.h"
#include "execution/creation.h"
#include "execution/pool_metrics.h"
#include "execution/read_only.h"
#include "nlohmann/json.hpp"
#include "observation/nomad_reads.h"
#include "rules/room.h"

namespace nomad_harvester::scaling {
namespace {

using runtime::CancelReason;
using runtime::Context;

// Status replies this long before its deadline, so that the reply arrives in time: sixty pools of a
// busy machine whose deadlines are the same wait for a processor, too (rule L8).
constexpr base::Duration kStatusMargin = std::chrono::seconds(1);
constexpr base::Duration kStatusBudget = std::chrono::seconds(7);
// How long a scale-in that was refused is not tried again (rule C12).
constexpr base::Duration kRefusedScaleInFor = std::chrono::seconds(30);
// How long the first Status of a pool waits for its Lease.
constexpr base::Duration kFirstLeaseRead = std::chrono::seconds(2);
constexpr char kUnknownRoom[] = "The room on the hosts is not known";

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

// Checks everything that the map alone can prove wrong. Templates are included once the plugin is
// configured, because they depend on the configuration.
absl::StatusOr<SharedPolicy> ParsePolicy(const StringMap& values,
                                         const absl::StatusOr<std::shared_ptr<Session>>& session) {
  if (!session.ok()) return config::ParsePoolPolicy(values);
  const auto check = [&config = *(*session)->clients().config](const config::PoolPolicy& policy,
                                                               std::string_view key,
                                                               const std::string& text) {
    return CheckTemplate(config, policy, key, text);
  };
  return config::ParsePoolPolicy(values, check);
}

// A file may be written later, so a missing one is a warning.
std::vector<std::string> MissingFiles(const config::PoolPolicy& policy) {
  std::vector<std::string> missing;
  for (const auto& [key, file] : {std::pair("user_data_file", &policy.user_data_file),
                                  std::pair("network_data_file", &policy.network_data_file)}) {
    if (!file->has_value() || base::StampFile(**file).has_value()) continue;
    missing.push_back(std::string(key) + ": " + **file +
                      " cannot be found: the pool cannot grow until it exists");
  }
  return missing;
}

// True if the keys just read belong to another cluster than a record of the pool: a VM's or, if no
// VM has one, the Lease's.
bool DiffersFromKeys(const PoolKey& key, const std::string& by_lease,
                     const Observation& observation) {
  bool is_recorded = false;
  for (const VmView& view : observation.vms) {
    if (!view.member || view.vm->pool != key.pool || view.vm->nomad_cluster.empty()) continue;
    if (IsOtherCluster(view.vm, observation)) return true;
    is_recorded = true;
  }
  return !is_recorded && IsOtherCluster(by_lease, observation);
}

class Service final : public TargetService {
 public:
  explicit Service(ServiceOptions options)
      : options_(std::move(options)),
        root_(Context::Background(*options_.clock)),
        read_only_(std::make_shared<ReadOnly>()) {}
  ~Service() override { root_.Cancel(CancelReason::kShutdown); }

  absl::Status SetConfig(const StringMap& values) override;
  absl::StatusOr<TargetStatus> Status(const Context& context, const StringMap& policy) override;
  absl::Status Scale(const Context& context, const ScaleAction& action,
                     const StringMap& policy) override;
  void Flush(const Context& context) override;
  void Stop(const Context& context) override;

 private:
  absl::StatusOr<std::shared_ptr<Session>> CurrentSession();
  absl::Status Configure(const StringMap& values);
  // The sink of the current configuration; null: none.
  std::shared_ptr<metrics::Sink> Metrics();
  void WarnOfFiles(Pool& pool, const config::PoolPolicy& policy);
  void SetOwnNode(const Context& context, Session& session, Pool& pool);

  absl::StatusOr<PoolSnapshot> ObserveLists(const Context& context, Session& session, Pool& pool,
                                            const SharedPolicy& policy);
  void AddHostReads(const Context& context, Session& session, const Pool& pool,
                    const config::PoolPolicy& policy,
                    std::vector<std::function<absl::Status()>>* reads);
  void ShowRoom(const Context& context, Session& session, Pool& pool, const PoolSnapshot& snapshot);
  TargetStatus Unready(Pool& pool, const std::string& reason);
  void LogReadiness(Pool& pool, const StatusReport& report);
  StatusInputs InputsFor(const PoolRecord& record, Pool& pool, const PoolSnapshot& snapshot);
  PoolRecord RecordFor(const Context& context, Session& session, const Pool& pool,
                       const PoolSnapshot& snapshot);

  absl::Status TryScale(const Context& context, const ScaleAction& action, const StringMap& values,
                        ScaleRequest* request, ScaleResult* result);
  absl::Status ScalePool(const Context& context, const std::shared_ptr<Session>& session,
                         Pool& pool, const config::PoolPolicy& policy, ScaleRequest request,
                         bool* has_interrupted, ScaleResult* result);
  absl::Status RefusedScaleIn(Pool& pool, const ScaleRequest& request);
  void KeepRefusal(Pool& pool, const ScaleRequest& request, const ScaleResult& result,
                   const absl::Status& outcome);
  void LogRefusal(const ScaleRequest& request, const ScaleResult& result,
                  const absl::Status& outcome);

  const ServiceOptions options_;
  const runtime::CancelSource root_;
  const std::shared_ptr<const runtime::WritePermit> read_only_;
  Pools pools_{options_};

  base::Mutex mutex_;
  std::shared_ptr<Session> session_ NH_GUARDED_BY(mutex_);
  // The last refusal of a Scale by pool, kept until a Scale is not refused.
  std::map<PoolKey, std::string> refusals_ NH_GUARDED_BY(mutex_);
  // Last member: its work uses the others.
  Background background_{options_, pools_, root_.context(), [this] {
                           const auto session = CurrentSession();
                           return session.ok() ? *session : nullptr;
                         }};
};

absl::Status Service::SetConfig(const StringMap& values) {
  absl::Status configured = Configure(values);
  if (!configured.ok()) CountError(Metrics().get(), error_class::kConfig);
  return configured;
}

std::shared_ptr<metrics::Sink> Service::Metrics() {
  base::MutexLock lock(mutex_);
  return session_ == nullptr ? nullptr : session_->clients().metrics_sink;
}

absl::Status Service::Configure(const StringMap& values) {
  NH_ASSIGN_OR_RETURN(config::PluginConfig parsed,
                      config::ParsePluginConfig(values, options_.environment));
  auto config = std::make_shared<const config::PluginConfig>(std::move(parsed));
  NH_ASSIGN_OR_RETURN(http::RawTransports transports, options_.transports(*config));
  std::set<std::string> warnings(config->warnings.begin(), config->warnings.end());
  warnings.insert(config->missing_token_files.begin(), config->missing_token_files.end());
  warnings.insert(transports.warnings.begin(), transports.warnings.end());
  for (const std::string& warning : warnings) options_.logger.Warn(warning);
  if (options_.set_log_level) options_.set_log_level(log::ParseLevel(config->log_level));
  const std::shared_ptr<metrics::Sink> sink =
      options_.metrics_for ? options_.metrics_for(config->metrics_address) : nullptr;
  ShowErrors(sink.get());
  auto session = std::make_shared<Session>(
      options_, MakeClients(config, std::move(transports), options_.random, options_.logger, sink),
      root_.context());
  options_.logger.Info("Configured", {{"harvester_url", config->harvester.url},
                                      {"nomad_address", config->nomad.address},
                                      {"nomad_region", config->nomad.region}});
  {
    base::MutexLock lock(mutex_);
    session_ = std::move(session);
  }
  // What runs has the old session. The new one has read no Lease yet, so it does not know whether a
  // pool is paused.
  for (const std::shared_ptr<Pool>& pool : pools_.All()) {
    {
      const base::MutexLock lock(pool->mutex);
      pool->state.refused_scale_in.reset();
    }
    pool->memory.SetHarvester(std::nullopt);
    pool->BeginAnew();
  }
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

void Service::SetOwnNode(const Context& context, Session& session, Pool& pool) {
  const auto own = session.OwnNode(context);
  pool.memory.SetOwnNode(own);
  if (!own.ok() && !context.Done()) pool.WarnOnce({base::Message(own.status())});
}

// Each list has its own time limit, so that two slow ones do not add up. None fails the Status.
void Service::AddHostReads(const Context& context, Session& session, const Pool& pool,
                           const config::PoolPolicy& policy,
                           std::vector<std::function<absl::Status()>>* reads) {
  const auto add = [&](std::function<void(Hosts & hosts, const Context& limited)> read) {
    reads->emplace_back([context, &hosts = session.hosts(), read = std::move(read)] {
      read(hosts, context.WithTimeout(kHostsLimit));
      return absl::OkStatus();
    });
  };
  const auto is_due = [&hosts = session.hosts(), now = options_.clock->Now()](
                          HostUse use, const std::string& ns) { return hosts.IsDue(use, ns, now); };
  const auto list_vms = [&ns = pool.key.ns](Hosts& hosts, const Context& limited) {
    hosts.List(limited, ns);
  };
  if (policy.publish_host && is_due(HostUse::kPublish, pool.key.ns)) {
    add(list_vms);
    add([](Hosts& hosts, const Context& limited) { hosts.RefreshZone(limited); });
  }
  if (EvacuatesHosts(policy) && is_due(HostUse::kEvacuate, pool.key.ns)) {
    add(list_vms);
    add([](Hosts& hosts, const Context& limited) { hosts.ListCordoned(limited); });
  }
  if (session.clients().metrics_sink != nullptr && is_due(HostUse::kRoom, "")) {
    add([&pool](Hosts& hosts, const Context& limited) {
      const auto rooms = hosts.ListRooms(limited);
      if (!rooms.ok()) pool.logger.Debug(kUnknownRoom, {{"error", rooms.status()}});
    });
  }
}

absl::StatusOr<PoolSnapshot> Service::ObserveLists(const Context& context, Session& session,
                                                   Pool& pool, const SharedPolicy& policy) {
  Observation observation =
      EmptyObservation(session.clients().config->nomad.region, pool.key.pool, policy);
  absl::StatusOr<harvester::Timestamped<std::shared_ptr<const Session::Vms>>> seen =
      base::Unavailable("not read");
  absl::StatusOr<nomad::Indexed<NodeList>> nodes = base::Unavailable("not read");
  absl::StatusOr<std::string> cluster = base::Unavailable("not read");
  session.nomad().NeedAttribute(observation.policy->node_attribute);
  // A process that has just started also reads the pool's Lease, and takes it into account.
  const std::shared_ptr<PoolAccess> access = session.AccessTo(pool);
  std::vector<std::function<absl::Status()>> reads = {
      [&] {
        seen = session.VmsForStatus(context, pool.key.ns);
        return seen.status();
      },
      [&] {
        nodes = session.nomad().ListNodesForStatus(context);
        if (nodes.ok()) cluster = session.nomad().Cluster(context);
        return nodes.status();
      }};
  if (!access->lease->is_known()) {
    reads.emplace_back([&] {
      const absl::Status read = access->lease->Refresh(context.WithTimeout(kFirstLeaseRead));
      if (kube::IsForbidden(read)) pool.WarnOnce({base::Message(read)});
      return read;
    });
  }
  const bool evacuates = EvacuatesHosts(*policy);
  AddHostReads(context, session, pool, *policy, &reads);
  const auto results =
      runtime::ForEachBounded(context, *options_.foreground, reads.size(), reads.size(),
                              [&](std::size_t i) { return reads[i](); });
  if (!results[0].ok()) return base::Annotate(results[0], "Harvester cannot be read");
  observation.own_now = options_.clock->WallNow();
  observation.now = seen->server_time.value_or(observation.own_now);
  SetVms(seen->value, &observation);
  TakeNodes(nodes, cluster, &observation);
  if (ListIsOlderThanVms(observation))
    TakeNodes(session.nomad().ListNodes(context), cluster, &observation);
  std::string by_lease = access->lease->record().nomad_cluster;
  // The VMs may have been adopted, or Nomad rebuilt, since its keys were read.
  if (DiffersFromKeys(pool.key, by_lease, observation)) {
    observation.nomad_cluster = session.nomad().ReadCluster(context);
  }
  CheckIndex(&observation);
  Link(&observation);
  pool.memory.Apply(options_.clock->Now(), &observation);
  session.hosts().Apply(pool.key.ns, &observation);
  if (evacuates) session.hosts().ApplyCordoned(pool.key.ns, options_.clock->Now(), &observation);
  return PoolSnapshot{.key = pool.key,
                      .seen = std::make_shared<const Snapshot>(std::move(observation)),
                      .policy = policy,
                      .lease_cluster = std::move(by_lease)};
}

void Service::WarnOfFiles(Pool& pool, const config::PoolPolicy& policy) {
  const std::vector<std::string> missing = MissingFiles(policy);
  pool.WarnOnce(missing);
  if (!missing.empty()) CountError(Metrics().get(), error_class::kFile);
}

// For each list of the hosts once. Until a trial creation of this process, the pool's newest VM
// shows what one asks of its host.
void Service::ShowRoom(const Context& context, Session& session, Pool& pool,
                       const PoolSnapshot& snapshot) {
  if (session.clients().metrics_sink == nullptr) return;
  base::MonoTime read_at{};
  {
    base::MutexLock lock(pool.mutex);
    read_at = pool.state.room_of;
  }
  const auto rooms = session.hosts().NewRooms(options_.clock->Now(), &read_at);
  if (!rooms.has_value()) return;
  std::optional<harvester::VmNeed> need;
  {
    base::MutexLock lock(pool.mutex);
    pool.state.room_of = read_at;
    need = pool.state.need;
  }
  if (!need.has_value()) {
    auto of_newest = NeedOfNewestVm(context, *session.clients().kube_urgent, snapshot);
    if (!of_newest.ok()) {
      return pool.logger.Debug(kUnknownRoom, {{"error", of_newest.status()}});
    }
    need = *std::move(of_newest);
    base::MutexLock lock(pool.mutex);
    pool.state.need = need;
  }
  const harvester::Room room = FindRoom(*rooms, *need, WaitingForHosts(*rooms, snapshot));
  PoolMetrics(session.clients().metrics_sink.get(), pool.key).HasRoom(room.vms);
}

TargetStatus Service::Unready(Pool& pool, const std::string& reason) {
  StatusReport report;
  report.reason = reason;
  {
    base::MutexLock lock(pool.mutex);
    report.status.count = pool.state.last_count;
  }
  LogReadiness(pool, report);
  return report.status;
}

// One WARN per change of the reason, not one per tick.
void Service::LogReadiness(Pool& pool, const StatusReport& report) {
  bool reason_changed = false;
  bool warning_changed = false;
  bool drift_changed = false;
  {
    base::MutexLock lock(pool.mutex);
    PoolState& state = pool.state;
    reason_changed = std::exchange(state.last_reason, report.reason) != report.reason;
    warning_changed = std::exchange(state.last_warning, report.warning) != report.warning;
    if (report.status.ready || !report.status.meta.empty()) {
      state.last_count = report.status.count;
      // While a Scale is running, the template of its VMs is only known here after it ends.
      drift_changed =
          !pool.gate.ScaleIsOpen() && std::exchange(state.last_drift, report.drift) != report.drift;
    }
  }
  if (reason_changed && !report.reason.empty()) {
    // A running Scale is expected: the agent itself requested it.
    pool.logger.Log(report.expected ? log::Level::kInfo : log::Level::kWarn, "Not ready",
                    {{"why", report.reason}, {"count", report.status.count}});
  } else if (reason_changed) {
    pool.logger.Info("Ready", {{"count", report.status.count}});
  }
  if (warning_changed && !report.warning.empty()) {
    pool.logger.Warn("VMs of the pool need attention", {{"what", report.warning}});
  }
  if (drift_changed && !report.drift.empty()) {
    pool.logger.Info("VMs were made from another template than the policy's",
                     {{"vms", report.drift}});
  }
}

StatusInputs Service::InputsFor(const PoolRecord& record, Pool& pool,
                                const PoolSnapshot& snapshot) {
  StatusInputs inputs;
  inputs.scale_open = pool.gate.ScaleIsOpen();
  inputs.paused = record.paused;
  const bool alarming = snapshot.mass_loss().alarming;
  const base::MonoTime now = options_.clock->Now();
  base::MutexLock lock(pool.mutex);
  PoolState& state = pool.state;
  inputs.current_template = state.new_vms.current;
  inputs.leftovers = state.leftovers;
  // Also kept by the process, because a new configuration has not read the Lease.
  state.last_event = std::max(state.last_event, record.last_event);
  const std::set<std::string> before = std::exchange(state.just_ready, JustBecameReady(snapshot));
  if (!std::includes(before.begin(), before.end(), state.just_ready.begin(),
                     state.just_ready.end())) {
    state.last_event = std::max(state.last_event, std::optional(snapshot.earlier_now()));
  }
  inputs.last_event = state.last_event;
  if (!alarming) {
    if (snapshot.observation().nomad.ok()) state.mass_loss_since.reset();
  } else if (!state.mass_loss_since.has_value()) {
    state.mass_loss_since = now;
  }
  if (state.mass_loss_since.has_value()) inputs.mass_loss_for = now - *state.mass_loss_since;
  state.mass_loss_over = inputs.mass_loss_for >= kMassLossTimeout;
  return inputs;
}

absl::StatusOr<TargetStatus> Service::Status(const Context& context, const StringMap& values) {
  const absl::StatusOr<std::shared_ptr<Session>> current = CurrentSession();
  auto parsed = ParsePolicy(values, current);
  if (!parsed.ok()) CountError(Metrics().get(), error_class::kPolicy);
  NH_ASSIGN_OR_RETURN(const SharedPolicy policy, std::move(parsed));
  NH_ASSIGN_OR_RETURN(const std::shared_ptr<Session> session, current);
  const std::shared_ptr<Pool> pool = pools_.Find(policy, values);
  {
    base::MutexLock lock(pool->mutex);
    pool->state.asks.Add(options_.clock->Now());
  }
  WarnOfFiles(*pool, *policy);
  const PoolMetrics metrics(session->clients().metrics_sink.get(), pool->key);
  base::Duration budget =
      std::min(context.Remaining(), policy->grpc_timeout.value_or(kStatusBudget));
  budget -= std::min(kStatusMargin, budget / 4);
  const Context limited = context.WithTimeout(budget).WithWritePermit(read_only_);
  auto snapshot = ObserveLists(limited, *session, *pool, policy);
  if (!snapshot.ok()) {
    NH_RETURN_IF_ERROR(root_.context().Check());
    CountError(session->clients().metrics_sink.get(), error_class::kHarvester);
    return Unready(*pool, base::Message(snapshot.status()));
  }
  const PoolRecord record = RecordFor(limited, *session, *pool, *snapshot);
  snapshot->lease_cluster = record.nomad_cluster;
  const StatusInputs inputs = InputsFor(record, *pool, *snapshot);
  const StatusReport report = ReportStatus(*snapshot, inputs);
  metrics.Observed(*snapshot);
  metrics.Replacements(*snapshot, record, inputs.current_template);
  metrics.Reported(report, record, inputs.leftovers, snapshot->now());
  ShowRoom(limited, *session, *pool, *snapshot);
  LogReadiness(*pool, report);
  background_.ReportUnclaimed(*session, *snapshot);
  background_.Wake(session, *snapshot);
  return report.status;
}

// Returns the record as far as this process knows it. It is read again while the record alone keeps
// the pool from being ready: the pool is paused or belongs to another Nomad cluster.
PoolRecord Service::RecordFor(const Context& context, Session& session, const Pool& pool,
                              const PoolSnapshot& snapshot) {
  const std::shared_ptr<PoolAccess> access = session.AccessTo(pool);
  PoolRecord known = access->lease->record();
  const bool decides = known.paused.HoldsAt(snapshot.now()) || IsOtherClusterByLease(snapshot);
  if (!decides || access->lease->held()) return known;
  const absl::Status read = access->lease->Refresh(context);
  if (read.ok()) return access->lease->record();
  pool.logger.Debug("Could not read the pool's Lease", {{"error", read}});
  return known;
}

absl::Status Service::Scale(const Context& context, const ScaleAction& action,
                            const StringMap& values) {
  ScaleRequest request{.count = action.count, .reason = action.reason, .consent = action.consent};
  ScaleResult result;
  const base::MonoTime begin = options_.clock->Now();
  absl::Status outcome = TryScale(context, action, values, &request, &result);
  if (!request.dry_run) {
    PoolMetrics(Metrics().get(), request.pool)
        .Scaled(result.plan, outcome, options_.clock->Now() - begin);
  }
  LogRefusal(request, result, outcome);
  return outcome;
}

// One WARN per change: the agent repeats a refused Scale at every tick.
void Service::LogRefusal(const ScaleRequest& request, const ScaleResult& result,
                         const absl::Status& outcome) {
  // A busy pool and a cancelled call are not refusals, and do not end an earlier one.
  if (absl::IsAborted(outcome) || absl::IsCancelled(outcome)) return;
  bool changed = false;
  {
    base::MutexLock lock(mutex_);
    if (outcome.ok() || result.acted) {
      refusals_.erase(request.pool);
      return;
    }
    std::string& last = refusals_[request.pool];
    // Its text has the time of the next try.
    const bool is_told = result.backs_off && !last.empty();
    const std::string text = outcome.ToString();
    changed = !is_told && std::exchange(last, text) != text;
  }
  std::vector<log::Field> fields = {{"pool", request.pool.ToString()},
                                    {"policy_id", request.terms.policy_id},
                                    {"reason", request.reason},
                                    {"error", outcome}};
  if (!result.action_id.empty()) fields.emplace_back("action_id", result.action_id);
  if (result.plan.has_value()) {
    fields.emplace_back("from", result.plan->from);
    fields.emplace_back("to", result.plan->to);
  }
  options_.logger.Log(changed ? log::Level::kWarn : log::Level::kDebug, "Scale refused", fields);
}

absl::Status Service::TryScale(const Context& context, const ScaleAction& action,
                               const StringMap& values, ScaleRequest* request,
                               ScaleResult* result) {
  // A policy that cannot be parsed may still name its pool.
  request->pool.ns = config::PoolPolicy().ns;
  if (const auto ns = values.find("namespace"); ns != values.end()) request->pool.ns = ns->second;
  if (const auto name = values.find("node_group_name"); name != values.end()) {
    request->pool.pool = name->second;
  }
  auto meta = ParseMeta(action.meta_json);
  if (meta.ok()) request->terms.policy_id = meta->policy_id;
  const absl::StatusOr<std::shared_ptr<Session>> current = CurrentSession();
  NH_ASSIGN_OR_RETURN(const SharedPolicy policy, ParsePolicy(values, current));
  request->pool = {.ns = policy->ns, .pool = policy->pool};
  NH_RETURN_IF_ERROR(meta);
  NH_ASSIGN_OR_RETURN(const std::shared_ptr<Session> session, current);
  const std::shared_ptr<Pool> pool = pools_.Find(policy, values);
  WarnOfFiles(*pool, *policy);
  request->dry_run = meta->dry_run || policy->dry_run || action.count == -1;
  if (request->dry_run) {
    if (!meta->dry_run_count.has_value() && action.count < 0) {
      options_.logger.Info("Dry run without a desired count: nothing to plan",
                           {{"pool", pool->key.ToString()}, {"reason", action.reason}});
      return absl::OkStatus();
    }
    request->count = meta->dry_run_count.value_or(action.count);
  }
  if (request->count < 0) {
    return base::InvalidArgument("count " + std::to_string(request->count) + " is negative");
  }
  const absl::Status refused = RefusedScaleIn(*pool, *request);
  result->backs_off = !refused.ok();
  NH_RETURN_IF_ERROR(refused);
  bool has_interrupted = false;  // the background, which goes on afterwards (rule S5)
  absl::Status outcome =
      ScalePool(context, session, *pool, *policy, *request, &has_interrupted, result);
  KeepRefusal(*pool, *request, *result, outcome);
  // The agent's older releases ask for no Status during the cooldown that follows a success. A
  // cancelled call has no further effect.
  const bool cancelled = context.cancel_reason() == CancelReason::kClient;
  if (action.has_begun != nullptr) *action.has_begun = result->acted;
  const bool leaves_work = result->acted || result->unrecorded || has_interrupted;
  if (leaves_work && action.goes_on && !cancelled) background_.Continue(pool);
  return outcome;
}

// The error of a scale-in that was refused a moment ago, and is wanted again; OK: there is none.
// The agent asks at each tick, and each try writes the Lease twice.
absl::Status Service::RefusedScaleIn(Pool& pool, const ScaleRequest& request) {
  base::MutexLock lock(pool.mutex);
  const auto& refused = pool.state.refused_scale_in;
  const bool is_wanted_again = !request.dry_run && refused.has_value() &&
                               request.count == refused->count &&
                               request.count < pool.state.last_count;
  return is_wanted_again && options_.clock->Now() < refused->until ? refused->why
                                                                   : absl::OkStatus();
}

void Service::KeepRefusal(Pool& pool, const ScaleRequest& request, const ScaleResult& result,
                          const absl::Status& outcome) {
  if (request.dry_run) return;
  base::MutexLock lock(pool.mutex);
  PoolState& state = pool.state;
  state.refused_scale_in.reset();
  if (outcome.ok() || result.acted || request.count >= state.last_count) return;
  // Of everything else the cause may have passed: a proxy's page, a 500, a token that is renewed.
  const bool is_refusal = absl::IsFailedPrecondition(outcome) ||
                          absl::IsPermissionDenied(outcome) || absl::IsResourceExhausted(outcome);
  const bool is_reply = kube::GetKubeError(outcome) || nomad::GetNomadError(outcome);
  const bool is_refused = kube::IsRefused(outcome) || nomad::IsRefused(outcome);
  if (!is_refusal || (is_reply && !is_refused)) return;
  state.refused_scale_in = {
      .count = request.count, .why = outcome, .until = options_.clock->Now() + kRefusedScaleInFor};
}

absl::Status Service::ScalePool(const Context& context, const std::shared_ptr<Session>& session,
                                Pool& pool, const config::PoolPolicy& policy, ScaleRequest request,
                                bool* has_interrupted, ScaleResult* result) {
  const Context limited = context.WithTimeout(kAcceptedWithin);
  const std::shared_ptr<PoolAccess> access = session->AccessTo(pool);
  if (request.dry_run) {
    const Context reading = limited.WithWritePermit(read_only_);
    SetOwnNode(reading, *session, pool);
    // The cached Lease may be older than what another process wrote to it, and a Scale that is open
    // in this process must not be disturbed.
    const std::unique_ptr<PoolLease> inspected = session->MakeLease(pool);
    NH_RETURN_IF_ERROR(inspected->Refresh(reading));
    // The pool's own backlog belongs to the loop inside the gate, which may be running now.
    PoolBacklog backlog(*options_.random);
    {
      base::MutexLock lock(pool.mutex);
      backlog.new_vms = pool.state.new_vms;
    }
    ScaleCall call(session->DependenciesFor(pool, *access, *inspected, &backlog), policy,
                   std::move(request));
    absl::Status outcome = call.DryRun(reading);
    *result = call.result();
    return outcome;
  }
  NH_ASSIGN_OR_RETURN(const std::unique_ptr<PoolGate::Guard> guard,
                      pool.gate.EnterForScale(limited));
  *has_interrupted = guard->has_interrupted();
  {
    base::MutexLock lock(pool.mutex);
    request.terms.mass_loss_over = pool.state.mass_loss_over;
  }
  SetOwnNode(guard->context(), *session, pool);
  ScaleCall call(session->DependenciesFor(pool, *access, *access->lease), policy,
                 std::move(request));
  NH_ASSIGN_OR_RETURN(const std::unique_ptr<LeaseHold> hold,
                      LeaseHold::Acquire(*access->lease, guard->context(), LeaseUser::kScale));
  metrics::Sink* const sink = session->clients().metrics_sink.get();
  const ShowLeaseHeld shown(PoolMetrics(sink, pool.key));
  absl::Status outcome = call.Run(hold->context());
  *result = call.result();
  if (limited.cancel_reason() == CancelReason::kClient && session->vm_events() != nullptr) {
    session->vm_events()->Drop(pool.key, result->action_id);
  }
  if (hold->context().cancel_reason() == CancelReason::kLeaseLost) {
    CountError(sink, error_class::kLeaseLost);
    outcome =
        base::Unavailable("the pool's Lease was lost: " + access->lease->why_lost() +
                          "; nothing more is written, and the next Status continues the work");
  }
  call.reconciler().Release(*hold);
  pool.Publish(*access->lease);
  {
    base::MutexLock lock(pool.mutex);
    PoolState& state = pool.state;
    state.asked_at = options_.clock->Now();
    if (result->acted) {
      state.inspected = false;
      state.rounds.Finished();
    }
  }
  return outcome;
}

void Service::Flush(const Context& context) {
  const auto session = CurrentSession();
  if (session.ok()) (*session)->FlushEvents(context);
}

void Service::Stop(const Context& context) {
  root_.Cancel(CancelReason::kShutdown);
  const std::vector<std::shared_ptr<Pool>> pools = pools_.All();
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
