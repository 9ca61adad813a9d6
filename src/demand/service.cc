// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/demand/service.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/base/text.h"
#include "nomad_harvester/demand/names.h"
#include "nomad_harvester/demand/overflow.h"
#include "nomad_harvester/demand/packing.h"
#include "nomad_harvester/demand/query.h"
#include "nomad_harvester/demand/reader.h"
#include "nomad_harvester/demand/room_reader.h"
#include "nomad_harvester/harvester/host_room.h"
#include "nomad_harvester/http/connection_parts.h"
#include "nomad_harvester/http/retry.h"
#include "nomad_harvester/kube/connection.h"
#include "nomad_harvester/kube/error.h"
#include "nomad_harvester/nomad/connection.h"
#include "nomad_harvester/nomad/error.h"

#include "idle_window.h"
#include "pool_nodes.h"

namespace nomad_harvester::demand {
namespace {

using metrics::Metric;

// The agent sets no deadline, and a query holds one of its workers.
constexpr base::Duration kQueryBudget = std::chrono::seconds(30);
// A query that nobody asks for this long is of a policy that is gone.
constexpr base::Duration kForgottenAfter = std::chrono::hours(24);

// What one configuration needs. A reload makes a new one.
struct Session {
  Session(std::shared_ptr<const config::PluginConfig> parsed,
          std::shared_ptr<const nomad::NomadClient> client,
          std::shared_ptr<const kube::KubeClient> harvester, runtime::Executor& executor,
          std::shared_ptr<metrics::Sink> metrics_sink)
      : config(std::move(parsed)),
        reader(std::move(client), executor),
        rooms(harvester == nullptr ? nullptr : std::make_unique<RoomReader>(std::move(harvester))),
        sink(std::move(metrics_sink)) {}
  const std::shared_ptr<const config::PluginConfig> config;  // its secrets stay known
  Reader reader;
  const std::unique_ptr<RoomReader> rooms;  // null: no connection to Harvester
  const std::shared_ptr<metrics::Sink> sink;
};

// What is known of one query, by its text.
struct Asked {
  IdleWindow window{};
  LastSeen last_seen{};
  std::optional<std::int64_t> told{};
  std::set<std::string> warned{};
  base::MonoTime last{};
};

// The nodes that a restart of this process must not shrink early. The target counts those that it
// drains, or has drained, as removed.
std::int64_t Present(const World& world) {
  return std::count_if(world.nodes.begin(), world.nodes.end(), [&](const PoolNode& each) {
    return IsBusy(each) || IsKept(each, world.at) || TakesWork(each);
  });
}

// Those that order nodes, the most first: "default/web.server (12 pending, 3 nodes)". Without
// nodes: it goes to those that another one has begun.
std::string Causes(const Demand& demand) {
  std::vector<const GroupDemand*> ordering;
  for (const GroupDemand& each : demand.groups) {
    if (each.verdict == Verdict::kNeedsNodes) ordering.push_back(&each);
  }
  std::stable_sort(ordering.begin(), ordering.end(),
                   [](const GroupDemand* a, const GroupDemand* b) { return a->nodes > b->nodes; });
  std::vector<std::string> names;
  names.reserve(ordering.size());
  for (const GroupDemand* const each : ordering) {
    std::string name = NameOf(*each->group) + " (" + std::to_string(each->pending) + " pending";
    if (each->nodes > 0) {
      name += ", " + std::to_string(each->nodes) + (each->nodes == 1 ? " node" : " nodes");
    }
    names.push_back(name + ")");
  }
  return base::FirstFew(names);
}

class Service final : public DemandService {
 public:
  explicit Service(DemandServiceOptions options)
      : options_(std::move(options)), root_(runtime::Context::Background(*options_.clock)) {}

  absl::Status SetConfig(const config::StringMap& settings) override;
  absl::StatusOr<Answer> Query(const runtime::Context& context, const std::string& text) override;
  void Stop() override { root_.Cancel(runtime::CancelReason::kShutdown); }

 private:
  absl::StatusOr<std::shared_ptr<Session>> CurrentSession();
  absl::StatusOr<Answer> Answered(const runtime::Context& context, Session& session,
                                  const std::string& text);
  absl::StatusOr<Answer> AnsweredRoom(const runtime::Context& context, Session& session,
                                      const std::string& text, const HomePool& pool);
  // The count with idle_for; logs what has changed.
  std::int64_t Conclude(const std::string& text, const demand::Query& query, const Needs& needs);
  void Tell(Session& session, const demand::Query& query, const Reading& reading,
            const Demand& demand, std::int64_t count);

  const DemandServiceOptions options_;
  const runtime::CancelSource root_;
  base::Mutex mutex_;
  std::shared_ptr<Session> session_ NH_GUARDED_BY(mutex_);
  std::map<std::string, Asked> asked_ NH_GUARDED_BY(mutex_);
};

absl::Status Service::SetConfig(const config::StringMap& settings) {
  NH_ASSIGN_OR_RETURN(config::PluginConfig parsed,
                      config::ParseApmConfig(settings, options_.environment));
  auto config = std::make_shared<const config::PluginConfig>(std::move(parsed));
  NH_ASSIGN_OR_RETURN(http::RawTransports made, options_.transports(*config));
  std::set<std::string> warnings(config->warnings.begin(), config->warnings.end());
  warnings.insert(config->missing_token_files.begin(), config->missing_token_files.end());
  warnings.insert(made.warnings.begin(), made.warnings.end());
  for (const std::string& warning : warnings) options_.logger.Warn(warning);
  if (options_.set_log_level) options_.set_log_level(log::ParseLevel(config->log_level));
  std::shared_ptr<metrics::Sink> sink =
      options_.metrics_for ? options_.metrics_for(config->metrics_address) : nullptr;
  if (sink != nullptr) {
    for (const std::string_view outcome : {"answered", "refused", "failed"}) {
      sink->Add(Metric::kQueries, {outcome}, 0);
    }
  }
  auto client = MakeClient(*config, std::move(made.nomad), options_.random, options_.logger, sink);
  auto harvester = MakeHarvesterClient(*config, std::move(made.harvester), options_.random,
                                       options_.logger, sink);
  options_.logger.Info("Configured as an APM", {{"nomad_address", config->nomad.address},
                                                {"nomad_region", config->nomad.region},
                                                {"harvester", harvester != nullptr}});
  auto session =
      std::make_shared<Session>(std::move(config), std::move(client), std::move(harvester),
                                *options_.executor, std::move(sink));
  const base::MutexLock lock(mutex_);
  session_ = std::move(session);
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<Session>> Service::CurrentSession() {
  NH_RETURN_IF_ERROR(root_.context().Check());
  const base::MutexLock lock(mutex_);
  if (session_ == nullptr) {
    return base::FailedPrecondition("the plugin has not been configured yet (SetConfig)");
  }
  return session_;
}

absl::StatusOr<Answer> Service::Query(const runtime::Context& context, const std::string& text) {
  NH_ASSIGN_OR_RETURN(const std::shared_ptr<Session> session, CurrentSession());
  absl::StatusOr<Answer> answer = Answered(context.WithTimeout(kQueryBudget), *session, text);
  if (session->sink != nullptr) {
    session->sink->Add(Metric::kQueries,
                       {answer.ok()                                ? "answered"
                        : absl::IsInvalidArgument(answer.status()) ? "refused"
                                                                   : "failed"},
                       1);
  }
  return answer;
}

absl::StatusOr<Answer> Service::Answered(const runtime::Context& context, Session& session,
                                         const std::string& text) {
  NH_ASSIGN_OR_RETURN(const demand::Query query, ParseQuery(text));
  if (query.subject == Subject::kRoom) return AnsweredRoom(context, session, text, query.home);
  const auto read = session.reader.Read(context);
  if (absl::IsPermissionDenied(read.status())) {
    return base::MakeStatus(read.status().code(),
                            base::Message(read.status()) + "; grant " + kTokenNeeds);
  }
  NH_ASSIGN_OR_RETURN(const std::shared_ptr<const Reading> reading, read);
  LastSeen last_seen;
  {
    const base::MutexLock lock(mutex_);
    last_seen = asked_[text].last_seen;
  }
  NH_ASSIGN_OR_RETURN(const Needs needs, NeedsOf(context, query, *reading, last_seen,
                                                 session.reader, session.rooms.get()));
  const std::int64_t count = Conclude(text, query, needs);
  Tell(session, query, *reading, needs.demand, count);
  return Answer{.count = count, .at = reading->at};
}

absl::StatusOr<Answer> Service::AnsweredRoom(const runtime::Context& context, Session& session,
                                             const std::string& text, const HomePool& pool) {
  if (session.rooms == nullptr) {
    return base::FailedPrecondition(std::string("room ") + kNeedsHarvester);
  }
  NH_ASSIGN_OR_RETURN(const PoolRoom read, session.rooms->Read(context, pool));
  const harvester::Room& room = read.room;
  const std::string name = ToString(pool);
  if (session.sink != nullptr) {
    session.sink->Set(Metric::kRoom, {name}, static_cast<double>(room.vms));
  }
  std::optional<std::int64_t> before;
  {
    const base::MutexLock lock(mutex_);
    Asked& asked = asked_[text];
    asked.last = options_.clock->Now();
    before = std::exchange(asked.told, room.vms);
  }
  if (before != room.vms) {
    std::vector<log::Field> fields = {{"pool", name}, {"vms", room.vms}};
    if (before.has_value()) fields.emplace_back("before", *before);
    fields.emplace_back("limited_by", room.forecast.why);
    options_.logger.Log(log::Level::kInfo, "Room for more VMs", fields);
  }
  return Answer{.count = room.vms, .at = context.clock().WallNow()};
}

std::int64_t Service::Conclude(const std::string& text, const demand::Query& query,
                               const Needs& needs) {
  const Demand& demand = needs.demand;
  std::optional<std::int64_t> before;
  std::int64_t count = 0;
  std::vector<const GroupDemand*> to_warn;
  {
    const base::MutexLock lock(mutex_);
    const base::MonoTime now = options_.clock->Now();
    Asked& asked = asked_[text];
    asked.last = now;
    for (const auto& [shown_by, last_seen] :
         {std::pair(demand.shown_by, &asked.last_seen.own),
          std::pair(needs.home_shown_by, &asked.last_seen.home)}) {
      const bool is_ready =
          shown_by != nullptr && shown_by->node->status == nomad::NodeStatus::kReady;
      if (is_ready) *last_seen = shown_by;
    }
    if (asked.window.empty()) asked.window.Add(now, query.idle_for, Present(needs.world));
    count = asked.window.Add(now, query.idle_for, demand.needed);
    before = std::exchange(asked.told, count);
    std::set<std::string> troubled;
    for (const GroupDemand& each : demand.groups) {
      if (each.verdict != Verdict::kImpossible && each.verdict != Verdict::kCannotTell) continue;
      std::string name = NameOf(*each.group) + ": " + each.why;
      if (!asked.warned.contains(name)) to_warn.push_back(&each);
      troubled.insert(std::move(name));
    }
    asked.warned = std::move(troubled);
    std::erase_if(asked_,
                  [now](const auto& entry) { return now - entry.second.last > kForgottenAfter; });
  }
  const std::string pool = query.Identity().ToString();
  for (const GroupDemand* const each : to_warn) {
    options_.logger.Warn(
        each->verdict == Verdict::kImpossible
            ? "Work that no node of the pool can hold orders none"
            : "Work of which nothing shows whether a new node can hold it orders none",
        {{"pool", pool},
         {"group", NameOf(*each->group)},
         {"pending", each->pending},
         {"why", each->why}});
  }
  if (before != count) {
    std::vector<log::Field> fields = {{"pool", pool}, {"count", count}};
    if (before.has_value()) fields.emplace_back("before", *before);
    fields.emplace_back("now", demand.needed);
    if (count > demand.needed) fields.emplace_back("held_by_idle_for", query.idle_for);
    for (const DemandPart& part : kDemandParts) fields.emplace_back(part.name, demand.*part.count);
    fields.emplace_back("probe", demand.probe);
    if (needs.home_nodes_to_come.has_value()) {
      fields.emplace_back("home", ToString(query.home));
      fields.emplace_back("home_nodes_to_come", *needs.home_nodes_to_come);
    }
    fields.emplace_back("for", Causes(demand));
    options_.logger.Log(log::Level::kInfo, "Nodes needed", fields);
  }
  return count;
}

void Service::Tell(Session& session, const demand::Query& query, const Reading& reading,
                   const Demand& demand, std::int64_t count) {
  if (session.sink == nullptr) return;
  metrics::Sink& sink = *session.sink;
  const std::string pool = query.Identity().ToString();
  sink.Set(Metric::kNodesNeeded, {pool}, static_cast<double>(count));
  std::map<Verdict, std::int64_t> pending;
  for (const GroupDemand& each : demand.groups) {
    if (!IsHeadroom(*each.group)) pending[each.verdict] += each.pending;
  }
  for (const policy::Choice<Verdict>& verdict : kVerdicts) {
    if (verdict.value == Verdict::kOtherPool) continue;
    sink.Set(Metric::kPendingAllocations, {pool, verdict.name},
             static_cast<double>(pending[verdict.value]));
  }
  sink.Set(Metric::kDemandRead, {pool},
           std::chrono::duration<double>(reading.at.time_since_epoch()).count());
}

}  // namespace

absl::StatusOr<http::RawTransports> MakeCurlTransports(const config::PluginConfig& config) {
  http::RawTransports made;
  NH_ASSIGN_OR_RETURN(made.nomad,
                      http::MakeTransport("Nomad", nomad::ResolveConnection(config.nomad),
                                          nomad::NomadTokenHeader(), &made.warnings));
  if (!config.harvester.has_server()) return made;
  NH_ASSIGN_OR_RETURN(
      made.harvester,
      http::MakeTransport("Harvester", kube::ResolveConnection(config.harvester),
                          {.name = "Authorization", .prefix = "Bearer "}, &made.warnings));
  return made;
}

std::shared_ptr<const nomad::NomadClient> MakeClient(const config::PluginConfig& config,
                                                     std::shared_ptr<http::HttpTransport> transport,
                                                     const std::shared_ptr<runtime::Random>& random,
                                                     const log::Logger& logger,
                                                     const std::shared_ptr<metrics::Sink>& sink) {
  const http::System system = http::MakeSystem(
      "nomad", std::move(transport),
      {.attempt_timeout = config.request_timeout, .permanently_refused = nomad::IsPermanentRefusal},
      nomad::kMaxRequests, random, logger, sink);
  return std::make_shared<const nomad::NomadClient>(
      system.Limited(static_cast<std::size_t>(config.max_concurrency)),
      nomad::NomadClient::Options{.region = config.nomad.region, .ns = config.nomad.ns});
}

std::shared_ptr<const kube::KubeClient> MakeHarvesterClient(
    const config::PluginConfig& config, std::shared_ptr<http::HttpTransport> transport,
    const std::shared_ptr<runtime::Random>& random, const log::Logger& logger,
    const std::shared_ptr<metrics::Sink>& sink) {
  if (transport == nullptr) return nullptr;
  const auto requests = static_cast<std::size_t>(config.max_concurrency);
  const http::System system = http::MakeSystem(
      "harvester", std::move(transport),
      {.attempt_timeout = config.request_timeout, .permanently_refused = kube::IsPermanentRefusal},
      requests, random, logger, sink);
  return std::make_shared<const kube::KubeClient>(system.Limited(requests));
}

std::unique_ptr<DemandService> MakeDemandService(DemandServiceOptions options) {
  return std::make_unique<Service>(std::move(options));
}

}  // namespace nomad_harvester::demand
