// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/demand/reader.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>

#include "nomad_harvester/base/status.h"

#include "pool_nodes.h"

namespace nomad_harvester::demand {
namespace {

using runtime::Context;

// How often the lists are read until nothing was placed meanwhile.
constexpr int kRounds = 3;
// The version of an object that no list has: it is read.
constexpr std::uint64_t kNotListed = std::numeric_limits<std::uint64_t>::max();

bool Same(const std::vector<nomad::BlockedEvaluation>& a,
          const std::vector<nomad::BlockedEvaluation>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& one, const auto& other) {
    return one.id == other.id && one.modify_index == other.modify_index;
  });
}

// Nomad keeps one for each job, and cancels the older ones soon
// (hashicorp/nomad:nomad/blocked_evals.go, processBlockJobDuplicate).
std::vector<nomad::BlockedEvaluation> NewestOfEachJob(std::vector<nomad::BlockedEvaluation> all) {
  std::map<std::pair<std::string, std::string>, std::uint64_t> newest;
  for (const nomad::BlockedEvaluation& each : all) {
    std::uint64_t& index = newest[{each.ns, each.job}];
    index = std::max(index, each.create_index);
  }
  std::erase_if(all, [&](const nomad::BlockedEvaluation& each) {
    return each.create_index < newest.at({each.ns, each.job});
  });
  return all;
}

bool AnyLeaves(const std::vector<Placed>& work) {
  return std::any_of(work.begin(), work.end(), [](const Placed& placed) { return placed.leaves; });
}

// hashicorp/nomad:nomad/leader.go, failedEvalUnblockInterval.
constexpr base::Duration kTriedAgainAfter = std::chrono::minutes(1);

// By task group. An evaluation whose plans were refused names no group that had a place in them
// (hashicorp/nomad:scheduler/generic_sched.go, createBlockedEval).
std::map<std::string, nomad::PlacementFailure> FailuresOf(
    const nomad::BlockedEvaluation& evaluation, const std::map<std::string, std::int64_t>& queued) {
  auto failures = evaluation.failures;
  if (evaluation.triggered_by != kPlansRefused) return failures;
  for (const auto& [group, count] : queued) {
    if (count == 0) continue;
    std::int64_t& unplaced = failures[group].unplaced;
    unplaced = std::max(unplaced, count);
  }
  return failures;
}

std::shared_ptr<const Group> Throttled(const Group& group, const std::string& quota) {
  auto throttled = std::make_shared<Group>(group);
  throttled->quota = quota;
  return throttled;
}

bool IsOfSystem(const nomad::JobStub& job) {
  return (job.type == "system" || job.type == "sysbatch") && !job.stop;
}

}  // namespace

struct Reader::Lists {
  std::vector<nomad::Placement> placements{};
  std::map<JobKey, nomad::JobStub> jobs{};
  std::vector<nomad::BlockedEvaluation> blocked{};
  std::vector<nomad::Node> nodes{};
};

Reader::Reader(std::shared_ptr<const nomad::NomadClient> client, runtime::Executor& executor)
    : client_(std::move(client)),
      executor_(executor),
      shared_([this](const Context& context, const nomad::ReadOptions& /*unused*/) {
        return ReadAll(context);
      }) {}

absl::StatusOr<std::shared_ptr<const Reading>> Reader::Read(const Context& context,
                                                            bool from_now_on) {
  if (!from_now_on) {
    const base::MutexLock lock(mutex_);
    if (held_ != nullptr && context.clock().Now() - held_->begun <= kReadingIsKept) return held_;
  }
  auto reading = shared_.Get(context, /*or_running=*/!from_now_on);
  const base::MutexLock lock(mutex_);
  held_ = reading.ok() ? *reading : nullptr;
  return reading;
}

absl::StatusOr<std::string> Reader::JobBeingPlaced(const Context& context) const {
  NH_ASSIGN_OR_RETURN(const auto pending, client_->ListPendingEvaluations(context));
  for (const nomad::BlockedEvaluation& each : pending.value) {
    if (!each.delayed) return each.ns + "/" + each.job;
  }
  return std::string();
}

absl::Status Reader::Verify(const Context& context) const {
  NH_ASSIGN_OR_RETURN(const nomad::TokenRights rights, client_->VerifyRights(context));
  const bool reads = rights.read_job == nomad::ReadJob::kEverywhere;
  if (reads && rights.list_jobs) return absl::OkStatus();
  // A token that Nomad knows may read its own policies
  // (hashicorp/nomad:nomad/acl_endpoint.go, GetPolicies).
  return base::MakeStatus(
      absl::StatusCode::kPermissionDenied,
      rights.read_job == nomad::ReadJob::kUnverified
          ? "the Nomad token may not read its own policies, so its rights cannot be verified: it "
            "is unknown to Nomad, or has expired, or a proxy refuses the request"
          : std::string("the Nomad token lacks the capability ") +
                (reads ? "list-jobs" : "read-job") + " in some namespaces");
}

// Work must not be lost between the lists: of work that is placed meanwhile, the evaluation was
// read before the placements, so that at worst it is in both. The lists are read again if an
// evaluation changed meanwhile; kRounds bound that in a Nomad that never rests. Nodes come last, so
// that a new one is not missed whose work was just placed.
absl::StatusOr<Reader::Lists> Reader::ReadLists(const Context& context) {
  Lists lists;
  NH_ASSIGN_OR_RETURN(auto blocked, client_->ListBlockedEvaluations(context));
  for (int round = 1;; ++round) {
    NH_ASSIGN_OR_RETURN(auto jobs, client_->ListJobs(context));
    NH_ASSIGN_OR_RETURN(auto placements, client_->ListPlacements(context));
    NH_ASSIGN_OR_RETURN(auto after, client_->ListBlockedEvaluations(context));
    if (round < kRounds && !Same(blocked.value, after.value)) {
      blocked = std::move(after);
      continue;
    }
    for (nomad::JobStub& job : jobs.value) {
      JobKey key(job.ns, job.id);
      lists.jobs.insert_or_assign(std::move(key), std::move(job));
    }
    lists.placements = std::move(placements.value);
    break;
  }
  lists.blocked = NewestOfEachJob(std::move(blocked.value));
  NH_ASSIGN_OR_RETURN(auto nodes, client_->ListNodes(context));
  lists.nodes = std::move(nodes.value);
  return lists;
}

std::set<Reader::JobKey> Reader::WantedOf(const Lists& lists) {
  std::set<JobKey> wanted;
  for (const auto& [key, job] : lists.jobs) {
    if (IsOfSystem(job)) wanted.insert(key);
  }
  for (const nomad::BlockedEvaluation& each : lists.blocked) wanted.emplace(each.ns, each.job);
  return wanted;
}

absl::StatusOr<std::shared_ptr<const Reader::KnownJob>> Reader::ReadJob(const Context& context,
                                                                        const JobKey& key) const {
  absl::StatusOr<nomad::Job> job = client_->GetJob(context, key.first, key.second);
  if (absl::IsNotFound(job.status())) return nullptr;
  NH_RETURN_IF_ERROR(job);
  auto made = std::make_shared<KnownJob>();
  made->modify_index = job->job_modify_index;
  for (const nomad::TaskGroup& group : job->groups) {
    made->groups.emplace(group.name, std::make_shared<const Group>(MakeGroup(*job, group)));
  }
  return made;
}

absl::StatusOr<Reader::Jobs> Reader::ReadJobs(const Context& context, const Reading& reading,
                                              const std::set<JobKey>& wanted) {
  std::vector<std::pair<JobKey, std::uint64_t>> listed;
  for (const JobKey& key : wanted) {
    const auto found = reading.jobs.find(key);
    listed.emplace_back(key, found == reading.jobs.end() ? kNotListed : found->second);
  }
  NH_ASSIGN_OR_RETURN(const auto read,
                      jobs_.Get(context, executor_, listed,
                                [&](const JobKey& key) { return ReadJob(context, key); }));
  Jobs known;
  for (std::size_t i = 0; i < read.size(); ++i) {
    if (read[i] != nullptr) known.emplace(listed[i].first, read[i]);
  }
  return known;
}

absl::StatusOr<Reading> Reader::ReadAll(const Context& context) {
  Reading reading;
  reading.begun = context.clock().Now();
  absl::Status verified;
  absl::StatusOr<Lists> read;
  runtime::CallAtOnce(context, executor_,
                      {[&] { verified = Verify(context); }, [&] { read = ReadLists(context); }});
  NH_RETURN_IF_ERROR(context.Check());  // else one may not have been called
  // What does not accept the token, or is no Nomad, verifies no rights. Without a token the review
  // itself fails (hashicorp/nomad:nomad/acl_endpoint.go, ResolveToken).
  const bool names_the_right = absl::IsPermissionDenied(verified);
  if (!absl::IsPermissionDenied(read.status()) || !names_the_right) NH_RETURN_IF_ERROR(read);
  NH_RETURN_IF_ERROR(verified);
  Lists lists = *std::move(read);
  reading.at = context.clock().WallNow();
  for (const auto& [key, job] : lists.jobs) reading.jobs.emplace(key, job.job_modify_index);
  jobs_.KeepOnly(reading.jobs);
  NH_ASSIGN_OR_RETURN(const Jobs jobs, ReadJobs(context, reading, WantedOf(lists)));
  for (const nomad::Placement& each : lists.placements) {
    reading.work[each.node_id].push_back(MakePlaced(each));
  }
  for (const auto& [key, stub] : lists.jobs) {
    const auto job = jobs.find(key);
    if (!IsOfSystem(stub) || job == jobs.end()) continue;
    for (const auto& [name, group] : job->second->groups) reading.system.push_back(group);
  }
  AddPending(lists, jobs, &reading);
  reading.blocked = std::move(lists.blocked);
  reading.nodes = std::move(lists.nodes);
  return reading;
}

void Reader::AddPending(Lists& lists, const Jobs& jobs, Reading* reading) {
  PendingSince since;
  const base::MutexLock lock(mutex_);
  for (nomad::BlockedEvaluation& each : lists.blocked) {
    const auto job = jobs.find({each.ns, each.job});
    if (job == jobs.end()) continue;
    const auto stub = lists.jobs.find(job->first);
    const auto all_queued =
        stub == lists.jobs.end() ? std::map<std::string, std::int64_t>() : stub->second.queued;
    const bool refused = each.triggered_by == kPlansRefused;
    const base::Duration overdue_after =
        kOverdueAfter + (refused ? kTriedAgainAfter : base::Duration());
    each.failures = FailuresOf(each, all_queued);
    for (const auto& [name, failure] : each.failures) {
      const auto group = job->second->groups.find(name);
      if (group == job->second->groups.end()) continue;
      const PendingSince::key_type key(job->first, name, refused);
      const auto earlier = pending_since_.find(key);
      const base::MonoTime from =
          earlier == pending_since_.end() ? reading->begun : earlier->second;
      std::optional<std::int64_t> queued;
      if (const auto found = all_queued.find(name); found != all_queued.end()) {
        queued = found->second;
      }
      const std::int64_t count = CountPending(failure, queued);
      if (count == 0) continue;
      since.emplace(key, from);
      reading->pending.push_back(
          {.group = each.quota_limit_reached.empty()
                        ? group->second
                        : Throttled(*group->second, each.quota_limit_reached),
           .count = count,
           .create_index = each.create_index,
           .overdue = reading->begun - from >= overdue_after});
    }
  }
  pending_since_ = std::move(since);
}

absl::StatusOr<World> Reader::WorldOf(const Context& context, const Reading& reading,
                                      const nodepool::PoolIdentity& pool,
                                      const std::set<std::string>& emptied,
                                      std::size_t most_places) {
  World world{.at = reading.at};
  world.pending = reading.pending;
  world.system = reading.system;
  std::set<std::string_view> ids;
  std::vector<std::pair<std::string, std::uint64_t>> wanted;
  std::vector<std::pair<std::size_t, const nomad::Node*>> places;  // with the size of their work
  const std::vector<Placed> none;
  for (const nomad::Node& stub : reading.nodes) {
    ids.insert(stub.id);
    const auto found = reading.work.find(stub.id);
    const std::vector<Placed>& work = found == reading.work.end() ? none : found->second;
    const bool is_of_pool = pool.Contains(stub);
    // What it loses may come to this pool.
    const bool may_lose_work =
        !emptied.empty() && (stub.eligible ? is_of_pool && AnyLeaves(work) : !work.empty());
    if (emptied.contains(stub.id) || may_lose_work) {
      wanted.emplace_back(stub.id, stub.modify_index);
    } else if (is_of_pool) {
      places.emplace_back(work.size(), &stub);
    }
  }
  if (places.size() > most_places) {
    world.is_whole = false;
    std::erase_if(places, [](const auto& place) {
      return !place.second->eligible || place.second->status != nomad::NodeStatus::kReady;
    });
    std::sort(places.begin(), places.end());
    places.resize(std::min(places.size(), most_places));
  }
  for (const auto& [work, stub] : places) wanted.emplace_back(stub->id, stub->modify_index);
  NH_ASSIGN_OR_RETURN(
      const auto nodes,
      nodes_.Get(context, executor_, wanted,
                 [&](const std::string& id) -> absl::StatusOr<std::shared_ptr<const nomad::Node>> {
                   auto full = client_->GetNode(context, id);
                   if (absl::IsNotFound(full.status()))
                     return nullptr;  // purged since it was listed
                   NH_RETURN_IF_ERROR(full);
                   return std::make_shared<const nomad::Node>(std::move(full->value));
                 }));
  nodes_.KeepOnly(ids);
  std::set<JobKey> moving;
  world.nodes.reserve(nodes.size());
  for (const auto& node : nodes) {
    if (node == nullptr) continue;
    if (node->eligible && !pool.Contains(*node) && !emptied.contains(node->id)) continue;
    world.nodes.push_back(MakePoolNode(node));
    const auto work = reading.work.find(node->id);
    if (work == reading.work.end()) continue;
    world.nodes.back().work = work->second;
    if (emptied.empty()) continue;
    const bool all_moves = emptied.contains(node->id) || IsEmptied(world.nodes.back());
    for (const Placed& placed : work->second) {
      if ((all_moves || placed.leaves) && Moves(placed)) moving.emplace(placed.ns, placed.job);
    }
  }
  NH_ASSIGN_OR_RETURN(const Jobs jobs, ReadJobs(context, reading, moving));
  for (const auto& [key, job] : jobs) {
    for (const auto& [name, group] : job->groups) {
      world.groups.emplace(std::tuple(key.first, key.second, name), group);
    }
  }
  return world;
}

}  // namespace nomad_harvester::demand
