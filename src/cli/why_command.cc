// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/base/text.h"
#include "nomad_harvester/demand/names.h"
#include "nomad_harvester/scaling/check.h"

#include "command.h"
#include "demand_view.h"
#include "nlohmann/json.hpp"
#include "pool_status.h"
#include "status_view.h"
#include "terminal.h"
#include "text.h"

namespace nomad_harvester::cli {
namespace {

using Json = nlohmann::ordered_json;

// The agent's policies have a cooldown, by default of five minutes, which the pool does not know.
constexpr base::Duration kCooldownIsLikely = std::chrono::minutes(10);

// What keeps a pool from having the nodes that are needed, besides time.
std::vector<std::string> HoldsOf(const DemandPool& pool, std::int64_t needed) {
  std::vector<std::string> holds;
  if (pool.files.limits.has_value() && needed > pool.files.limits->max) {
    holds.push_back(MaxText(pool.files.limits->max, needed));
  }
  for (const std::string& refusal : pool.files.refusals) holds.push_back(refusal);
  if (!pool.run.has_value()) {
    const auto dry_run = pool.files.policy.find("dry-run");
    if (dry_run != pool.files.policy.end() && dry_run->second == "true") {
      holds.emplace_back(scaling::kDryRunMeans);
    }
    holds.push_back("Harvester was not asked: " + base::OneLine(pool.problem));
    return holds;
  }
  auto inspection = InspectPool(*pool.run);
  if (!inspection.ok()) {
    holds.push_back(base::OneLine(base::Message(inspection.status())));
    return holds;
  }
  const PoolStatus status = DescribePool(*std::move(inspection), "",
                                         pool.files.SharedText(pool.run->settings.environment));
  if (!status.inspection.report.reason.empty()) {
    holds.push_back(status.inspection.report.reason);
  }
  for (const Finding& finding : status.troubles) holds.push_back(FindingText(finding));
  for (const Finding& finding : status.under_way) holds.push_back(FindingText(finding));
  const auto& last = status.inspection.lease.record.policy;
  if (holds.empty() && last.has_value() && needed > status.inspection.report.status.count) {
    const base::Duration age = status.inspection.snapshot.now() - last->at;
    if (age < kCooldownIsLikely) {
      holds.push_back("the agent has scaled it " + AgeText(age) +
                      " ago, and does so again once its policy's cooldown has passed");
    }
  }
  return holds;
}

const demand::GroupDemand* Find(const demand::Demand& demand, const std::string& ns,
                                const std::string& job, const std::string& group) {
  const auto found =
      std::find_if(demand.groups.begin(), demand.groups.end(), [&](const auto& each) {
        return each.group->ns == ns && each.group->job == job && each.group->name == group;
      });
  return found == demand.groups.end() ? nullptr : &*found;
}

using JobKey = std::pair<std::string, std::string>;  // namespace, ID

std::string TextOf(const JobKey& job) { return job.first + "/" + job.second; }

// NOT_FOUND names the nearest one. An ID may have slashes, too.
absl::StatusOr<JobKey> FindJob(const std::map<JobKey, std::uint64_t>& jobs,
                               const WhyArguments& arguments) {
  const JobKey given(arguments.ns, arguments.job);
  if (jobs.contains(given)) return given;
  const std::size_t slash = arguments.job.find('/');
  if (slash != std::string::npos) {
    const JobKey with_namespace(arguments.job.substr(0, slash), arguments.job.substr(slash + 1));
    if (jobs.contains(with_namespace)) return with_namespace;
  }
  std::vector<std::string> names;
  names.reserve(jobs.size());
  std::string text = "Nomad has no job " + TextOf(given) + " that runs or waits";
  for (const auto& [job, index] : jobs) {
    if (job.second == arguments.job) {
      return absl::NotFoundError(text + "; there is " + TextOf(job) + ": give --namespace " +
                                 job.first);
    }
    if (job.first == arguments.ns) names.push_back(job.second);
  }
  return absl::NotFoundError(text + DidYouMean(base::NearestName(arguments.job, names)));
}

// One group of the job that waits.
struct Waiting {
  const nomad::BlockedEvaluation* evaluation = nullptr;
  std::string group{};
  const nomad::PlacementFailure* failure = nullptr;
};

std::vector<Waiting> WaitingOf(const demand::Reading& reading, const JobKey& job) {
  std::vector<Waiting> waiting;
  for (const nomad::BlockedEvaluation& each : reading.blocked) {
    if (JobKey(each.ns, each.job) != job) continue;
    for (const auto& [group, failure] : each.failures) waiting.push_back({&each, group, &failure});
  }
  return waiting;
}

std::string GroupText(const Waiting& waiting, const std::vector<AnsweredQuery>& queries) {
  const nomad::BlockedEvaluation& evaluation = *waiting.evaluation;
  std::string size;
  std::string verdicts;
  for (const AnsweredQuery& answered : queries) {
    const auto* const found = Find(answered.demand, evaluation.ns, evaluation.job, waiting.group);
    if (found == nullptr) continue;
    size =
        ": " + std::to_string(found->pending) + " pending, each " + demand::SizeText(*found->group);
    verdicts += "  " + PoolText(answered) + ": " + VerdictText(*found) + "\n";
  }
  const bool refused =
      evaluation.triggered_by == demand::kPlansRefused && waiting.failure->nodes_evaluated == 0;
  std::string text = "Group " + waiting.group + size + "\n  Nomad: " +
                     (refused ? "it refused its plans, and tries it again within a minute"
                              : FailureText(*waiting.failure)) +
                     "\n";
  if (!evaluation.quota_limit_reached.empty()) {
    text += "  Nomad: the quota " + evaluation.quota_limit_reached + " was reached\n";
  }
  return text + verdicts;
}

Json GroupJson(const Waiting& waiting, const std::vector<AnsweredQuery>& queries) {
  Json pools = Json::array();
  for (const AnsweredQuery& answered : queries) {
    const auto* const found =
        Find(answered.demand, waiting.evaluation->ns, waiting.evaluation->job, waiting.group);
    if (found == nullptr) continue;
    Json pool = GroupDocument(*found);
    pool["pool"] = answered.query.Identity().ToString();
    pool["policy"] = answered.policy;
    pools.push_back(std::move(pool));
  }
  return {{"group", waiting.group},
          {"nomad", FailureDocument(*waiting.failure)},
          {"pools", std::move(pools)}};
}

// A pool of the files, and what holds it.
struct Held {
  const AnsweredQuery* pool = nullptr;
  std::int64_t needed = 0;
  bool takes_job = false;  // it has room for some of the job, or orders nodes for it
  std::vector<std::string> by{};
};

std::vector<Held> HeldOf(const DemandRun& run, const std::vector<AnsweredQuery>& queries,
                         const JobKey& job) {
  const auto takes = [&](const demand::GroupDemand& group) {
    return JobKey(group.group->ns, group.group->job) == job &&
           (group.fits > 0 || group.verdict == demand::Verdict::kNeedsNodes);
  };
  std::vector<Held> all;
  for (const DemandPool& pool : run.pools) {
    Held held;
    // Of a policy with a wrong query there is none.
    for (const AnsweredQuery& answered : queries) {
      if (answered.files != &pool.files) continue;
      held.pool = &answered;
      held.needed = std::max(held.needed, answered.demand.needed);
      const auto& groups = answered.demand.groups;
      held.takes_job = held.takes_job || std::any_of(groups.begin(), groups.end(), takes);
    }
    if (held.pool == nullptr) continue;
    if (held.takes_job) held.by = HoldsOf(pool, held.needed);
    all.push_back(std::move(held));
  }
  return all;
}

std::string HeldText(const Held& held) {
  std::string text = "Pool " + PoolText(*held.pool) + ": ";
  if (!held.takes_job) return text + "orders no node for this job, see above\n";
  text += NeededText(held.needed) + " in all" + (held.by.empty() ? ", and nothing holds it" : "") +
          "\n";
  for (const std::string& hold : held.by) text += "  " + hold + "\n";
  for (const std::string& note : NotesOf(*held.pool)) text += "  Note: " + note + "\n";
  return text;
}

}  // namespace

int ShowWhy(const DemandRun& run, const WhyArguments& arguments) {
  std::vector<UnreadPolicy> unread = run.unread;
  auto queries = QueriesOf(run.pools, &unread);
  if (!queries.ok()) return run.errors.Refuse(queries.status(), kExitUsage);
  const auto reading = Answer(run, &*queries);
  if (!reading.ok()) return run.errors.Refuse(reading.status(), kExitFailure);
  const auto job = FindJob((*reading)->jobs, arguments);
  if (!job.ok()) return run.errors.Refuse(job.status(), kExitFailure);
  const std::vector<Waiting> waiting = WaitingOf(**reading, *job);
  const std::vector<Held> held =
      waiting.empty() ? std::vector<Held>() : HeldOf(run, *queries, *job);
  const int exit_code = unread.empty() ? kExitOk : kExitFailure;
  if (arguments.output != kForPeople) {
    Json groups = Json::array();
    for (const Waiting& each : waiting) groups.push_back(GroupJson(each, *queries));
    Json pools = Json::array();
    for (const Held& each : held) {
      pools.push_back({{"pool", each.pool->query.Identity().ToString()},
                       {"policy", each.pool->policy},
                       {"needed", each.needed},
                       {"takes_job", each.takes_job},
                       {"held_by", each.by}});
    }
    for (const UnreadPolicy& each : unread) pools.push_back(UnreadDocument(each));
    run.out << PrintableDocument(arguments.output, {{"namespace", job->first},
                                                    {"job", job->second},
                                                    {"groups", std::move(groups)},
                                                    {"pools", std::move(pools)}});
    return exit_code;
  }
  std::string text =
      waiting.empty() ? "Nothing of job " + TextOf(*job) + " waits for a node.\n" : "";
  for (const Waiting& each : waiting) text += GroupText(each, *queries);
  for (const Held& each : held) text += HeldText(each);
  run.out << Fold(PrintableLines(text + UnreadText(unread)), run.terminal.width, 2);
  return exit_code;
}

void AddWhyCommand(CLI::App& app, const Invocation& invocation) {
  const auto settings = std::make_shared<SettingArguments>();
  const auto arguments = std::make_shared<WhyArguments>();
  CLI::App* const command = app.add_subcommand(
      "why",
      "Say why allocations of a job in Nomad are pending: what Nomad found, what the pools of the "
      "files could do for them, and what holds these pools. Only reads.");
  command
      ->add_option("JOB", arguments->job, "The job in Nomad, with --namespace or as NAMESPACE/JOB")
      ->required();
  AddFileOptions(*command, settings->files);
  AddPoolArgument(*command, settings->files);
  AddSetOption(*command, settings->pairs,
               "KEY=VALUE of the plugin's block; repeatable, the "
               "last one of a key counts; takes precedence over the environment and the files");
  command->add_option("-n,--namespace", arguments->ns, "The job's namespace in Nomad")
      ->type_name("NOMAD-NAMESPACE")
      ->capture_default_str();
  AddOutputOption(*command, arguments->output);
  command->footer(
      "Exit: 0 answered, also if nothing is pending; 1 Nomad or one of several policies cannot be "
      "read, or Nomad has no such job; 2 usage, 130 interrupted.");
  command->callback([settings, arguments, invocation] {
    settings->files = FindAgentFiles(settings->files, invocation.environment);
    invocation.exit_code =
        RunDemand(invocation.Errors("why"), *settings, {.policies = true, .harvester = true},
                  invocation.environment,
                  [arguments](const DemandRun& run) { return ShowWhy(run, *arguments); });
  });
}

}  // namespace nomad_harvester::cli
