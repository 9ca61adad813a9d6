// SPDX-License-Identifier: Apache-2.0
// Compares a pool's existing VMs and nodes with its policy.
#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/time.h"
#include "nomad_harvester/scaling/observer.h"

#include "absl/strings/str_join.h"
#include "commands/check_parts.h"
#include "execution/creation.h"

namespace nomad_harvester::scaling {
namespace {

constexpr char kBootTime[] = "pool.boot_time";
constexpr char kTokenLifetime[] = "pool.token_lifetime";
constexpr char kHostVolumes[] = "pool.host_volumes";
constexpr char kReadyDrivers[] = "pool.ready_drivers";
constexpr char kCluster[] = "pool.nomad_cluster";
constexpr char kClocks[] = "clocks";
constexpr char kDryRun[] = "pool.dry_run";
constexpr char kPaused[] = "pool.paused";

// Allows for a Date in whole seconds and the time of the reply.
constexpr base::Duration kClocksMayDiffer = std::chrono::seconds(30);

std::string Text(base::Duration duration) {
  return base::FormatGoDuration(std::chrono::floor<std::chrono::seconds>(duration));
}

struct Joins {
  int count = 0;
  base::Duration longest{};        // until a node registered
  base::Duration longest_ready{};  // until a node was ready
};

Joins JoinsOf(const std::vector<harvester::VirtualMachine>& vms) {
  Joins joins;
  for (const harvester::VirtualMachine& vm : vms) {
    if (!vm.joined_at.has_value()) continue;
    ++joins.count;
    joins.longest = std::max<base::Duration>(joins.longest, *vm.joined_at - vm.created_at);
    const base::WallTime ready_at = std::max(*vm.joined_at, vm.ready_at.value_or(*vm.joined_at));
    joins.longest_ready = std::max<base::Duration>(joins.longest_ready, ready_at - vm.created_at);
  }
  return joins;
}

void CheckBootTime(const config::PoolPolicy& policy, const Joins& joins, CheckLines* lines) {
  const std::string limit = "join_timeout is " + Text(policy.join_timeout);
  if (joins.count == 0) {
    lines->Set(kBootTime, CheckOutcome::kUnknown, "no VM of the pool has joined yet; " + limit);
  } else {
    const std::string text = "the slowest of " + std::to_string(joins.count) +
                             " VMs was ready after " + Text(joins.longest_ready) + "; " + limit;
    const bool short_of_it = joins.longest_ready > policy.join_timeout / 5 * 4;
    lines->Set(kBootTime, short_of_it ? CheckOutcome::kWarn : CheckOutcome::kPass, text,
               short_of_it ? "raise join_timeout: a VM that is a little slower is removed" : "");
  }
}

// Before a VM runs, its token is renewed at half its lifetime, so the guest has at least the other
// half.
void CheckTokenLifetime(const config::PoolPolicy& policy, const Joins& joins, CheckLines* lines) {
  const base::Duration left = kIntroTokenFor / 2;
  const bool seen = joins.count > 0;
  const base::Duration boot = seen ? joins.longest : policy.join_timeout;
  const std::string text =
      (seen ? "the slowest VM joined after " + Text(boot) : "join_timeout is " + Text(boot)) +
      "; a guest that starts has a token for " + Text(left) + " to " + Text(kIntroTokenFor) +
      ", or less if Nomad's max_identity_ttl says so";
  const bool fits = boot <= left;
  lines->Set(kTokenLifetime,
             fits   ? CheckOutcome::kPass
             : seen ? CheckOutcome::kWarn
                    : CheckOutcome::kUnknown,
             text, fits ? "" : "let the image boot faster: an expired token is refused for ever");
}

void CheckHostVolumes(const config::PoolPolicy& policy, const std::vector<nomad::Node>& nodes,
                      CheckLines* lines) {
  std::vector<std::string> holders;
  for (const nomad::Node& node : nodes) {
    if (node.dynamic_host_volumes.empty()) continue;
    holders.push_back(node.name + " (" + absl::StrJoin(node.dynamic_host_volumes, ", ") + ")");
  }
  if (holders.empty()) {
    lines->Set(kHostVolumes, CheckOutcome::kPass, "no node of the pool has one");
  } else if (policy.host_volumes == config::HostVolumes::kProtect) {
    lines->Set(kHostVolumes, CheckOutcome::kWarn,
               absl::StrJoin(holders, ", ") + ": these VMs are never removed",
               "delete the volumes that are not needed, or set host_volumes = \"ignore\", which "
               "loses their data with the VM");
  } else {
    lines->Set(kHostVolumes, CheckOutcome::kWarn,
               absl::StrJoin(holders, ", ") +
                   ": host_volumes = \"ignore\": their data is lost when the VM is removed",
               "set host_volumes = \"protect\" to keep such VMs");
  }
}

// A driver that no node of the pool has is probably a mistake: new VMs would never become ready.
void CheckReadyDrivers(const config::PoolPolicy& policy, const std::vector<nomad::Node>& nodes,
                       CheckLines* lines) {
  std::set<std::string> detected;
  for (const nomad::Node& node : nodes) {
    for (const nomad::Driver& driver : node.drivers) {
      if (driver.detected) detected.insert(driver.name);
    }
  }
  std::vector<std::string> missing;
  for (const std::string& driver : policy.ready_drivers) {
    if (!detected.contains(driver)) missing.push_back(driver);
  }
  if (detected.empty()) {
    static const std::vector<std::string> kKnown = {"docker", "exec", "exec2",   "java",
                                                    "podman", "qemu", "raw_exec"};
    std::string doubts;
    for (const std::string& driver : policy.ready_drivers) {
      if (std::find(kKnown.begin(), kKnown.end(), driver) != kKnown.end()) continue;
      const auto nearest = base::NearestName(driver, kKnown);
      if (nearest.has_value()) doubts += "; " + driver + ": did you mean " + *nearest + "?";
    }
    lines->Set(kReadyDrivers, doubts.empty() ? CheckOutcome::kUnknown : CheckOutcome::kWarn,
               "the pool has no node that tells its drivers" + doubts,
               doubts.empty() ? "" : "correct ready_drivers, unless there is such a driver");
  } else if (missing.empty()) {
    lines->Set(kReadyDrivers, CheckOutcome::kPass, "nodes of the pool have them");
  } else {
    lines->Set(kReadyDrivers, CheckOutcome::kFail,
               absl::StrJoin(missing, ", ") + ": no node of the pool has it; they have " +
                   absl::StrJoin(detected, ", ") + ": no new VM would become ready",
               "correct ready_drivers, or let the image have that driver");
  }
}

// Applies the rules for Nomad clusters to the pool (rule C15).
void CheckCluster(const PoolKey& pool, const HarvesterFacts& harvester, const NomadFacts& nomad,
                  CheckLines* lines) {
  const std::vector<harvester::VirtualMachine>& vms = *harvester.vms;
  const std::string& cluster = *nomad.cluster;
  Observation observation;
  observation.nomad = absl::OkStatus();
  observation.region = nomad.region;
  observation.nomad_cluster = cluster;
  SetVms(std::make_shared<const std::vector<harvester::VirtualMachine>>(vms), &observation);
  const PoolSnapshot snapshot{.key = pool,
                              .seen = std::make_shared<const Snapshot>(std::move(observation)),
                              .lease_cluster = harvester.lease.record.nomad_cluster};
  std::vector<std::string> others;
  for (const harvester::VirtualMachine& vm : vms) {
    if (IsOtherCluster(vm, snapshot.observation())) others.push_back(vm.name);
  }
  const absl::Status problem = CheckCluster(snapshot);
  const bool stops = !problem.ok();
  if (stops && cluster.empty()) {
    lines->Set(kCluster, CheckOutcome::kFail, base::Message(problem));
    return;
  }
  for (const VmView& view : snapshot.observation().vms) {
    // Without a list of nodes there is no index: its failure has a line of its own.
    if (!nomad.nodes.has_value()) break;
    if (CheckListIndex(view, snapshot.observation(), nomad.index).ok()) continue;
    lines->Set(kCluster, CheckOutcome::kFail,
               "its index " + std::to_string(nomad.index) + " is below " +
                   std::to_string(view.vm->nodes->index) + ", at which VM " + view.vm->name +
                   " was made: it is another Nomad, or was restored",
               "correct nomad_address; after a restore run nomad-harvester adopt");
    return;
  }
  if (stops && others.empty()) others.emplace_back("the pool's Lease");
  const std::string text = absl::StrJoin(others, ", ") +
                           ": of another Nomad cluster, by the annotation " +
                           harvester::kNomadClusterAnnotation;
  if (stops) {
    lines->Set(kCluster, CheckOutcome::kFail, text,
               "correct nomad_address; if Nomad was rebuilt, run nomad-harvester adopt");
  } else if (!others.empty()) {
    lines->Set(kCluster, CheckOutcome::kWarn,
               text + "; the pool belongs to this one: such VMs are counted and not touched",
               "delete them, if that cluster does not use them any more");
  } else if (cluster.empty()) {
    lines->Set(kCluster, CheckOutcome::kUnknown,
               "it does not tell its keys (/.well-known/jwks.json): it is older than 1.7, or a "
               "proxy refuses the path",
               "let the path through: by its keys two Nomad clusters are told apart");
  } else {
    lines->Set(kCluster, CheckOutcome::kPass,
               vms.empty() ? "the pool has no VM yet" : "the pool's VMs belong to it");
  }
}

// By the API server's time, as a Scale does (rule L10).
void CheckPause(const PoolKey& pool, const HarvesterFacts& harvester, base::WallTime now,
                CheckLines* lines) {
  const base::Hold& paused = harvester.lease.record.paused;
  if (!paused.HoldsAt(harvester.clock.has_value() ? harvester.clock->server : now)) return;
  const std::string& misread = harvester.lease.misread_pause;
  lines->Expect(kPaused, "pool " + pool.ToString());
  lines->Set(kPaused, CheckOutcome::kWarn,
             "it is paused " +
                 (paused.always ? "until somebody resumes it"
                                : "until " + base::FormatRfc3339(*paused.until)) +
                 ", by the annotation " + harvester::kLeasePausedAnnotation +
                 " of its Lease, which "
                 "nomad-harvester pause or kubectl wrote: every Scale is refused, and no removal "
                 "goes on" +
                 (misread.empty() ? "" : "; " + misread),
             "nomad-harvester resume, with the options of this command");
}

// `id`: of the line about this annotation.
void CheckAnnotation(const std::vector<harvester::VirtualMachine>& vms, const char* key,
                     const char* id, const char* subject, CheckLines* lines) {
  std::vector<std::string> misread;
  for (const harvester::VirtualMachine& vm : vms) {
    const std::string why = Misread(vm.annotations, key);
    if (!why.empty()) misread.push_back("VM " + vm.name + ": " + why);
  }
  if (misread.empty()) return;
  lines->Expect(id, subject);
  lines->Set(id, CheckOutcome::kWarn, absl::StrJoin(misread, "; "),
             "write one of these, or remove the annotation");
}

void CheckClocks(const HarvesterFacts& harvester, const NomadFacts& nomad, CheckLines* lines) {
  std::vector<std::string> known;
  std::vector<std::string> wrong;
  const auto compare = [&](const char* system, const std::optional<ClockReading>& clock) {
    if (!clock.has_value()) return;
    known.emplace_back(system);
    const base::Duration difference = clock->server - clock->own;
    if (difference > kClocksMayDiffer) {
      wrong.push_back(std::string(system) + " is " + Text(difference) + " ahead");
    } else if (-difference > kClocksMayDiffer) {
      wrong.push_back(std::string(system) + " is " + Text(-difference) + " behind");
    }
  };
  compare("Harvester", harvester.clock);
  compare("Nomad", nomad.clock);
  if (known.empty()) {
    lines->Set(kClocks, CheckOutcome::kUnknown, "no system told its time");
  } else if (wrong.empty()) {
    lines->Set(kClocks, CheckOutcome::kPass,
               "this machine agrees with " + absl::StrJoin(known, " and "));
  } else {
    lines->Set(kClocks, CheckOutcome::kWarn,
               "compared with this machine " + absl::StrJoin(wrong, ", ") +
                   ": introduction tokens, certificates and times in logs disagree",
               "synchronise the clocks by NTP");
  }
}

}  // namespace

std::string Misread(const config::StringMap& annotations, std::string_view key) {
  const auto text = annotations.find(std::string(key));
  if (text == annotations.end() || base::ParseGoBool(text->second).has_value()) return "";
  const bool may_be_time = key != harvester::kDeleteFirstAnnotation;
  if (may_be_time && base::ParseRfc3339(text->second).ok()) return "";
  return "its annotation " + std::string(key) + " = \"" + text->second + "\" is neither true" +
         (may_be_time ? ", false nor a time such as 2026-12-01T06:00:00Z, and counts as true"
                      : " nor false, and counts as false");
}

bool SharesNodes(const harvester::VirtualMachine& vm, const config::PoolPolicy& policy) {
  return vm.pool != policy.pool && harvester::IsMember(vm) && vm.nodes.has_value() &&
         !Contradict(IdentityOf(*vm.nodes), IdentityOf(policy));
}

std::string SameNodesText(const std::set<std::string>& pools) {
  return "also of " + absl::StrJoin(pools, ", ") +
         ": a demand query counts the nodes for each of these pools, and one that starts or drains "
         "keeps all of them from being ready";
}

std::vector<CheckResult> CheckPool(const config::PoolPolicy& policy,
                                   const HarvesterFacts& harvester, const NomadFacts& nomad,
                                   base::WallTime now) {
  CheckLines lines;
  lines.Expect(kBootTime, "time to join");
  const bool has_tokens = policy.intro_token != config::IntroToken::kOff;
  if (has_tokens) lines.Expect(kTokenLifetime, "introduction tokens' time to live");
  lines.Expect(kHostVolumes, "dynamic host volumes");
  if (!policy.ready_drivers.empty()) {
    lines.Expect(kReadyDrivers, "ready_drivers " + absl::StrJoin(policy.ready_drivers, ", "));
  }
  lines.Expect(kCluster, "Nomad's cluster");
  lines.Expect(kClocks, "clocks");
  CheckPause({.ns = policy.ns, .pool = policy.pool}, harvester, now, &lines);
  if (const std::string text = DeadHolderText(harvester.lease); !text.empty()) {
    lines.Expect("pool.lease", "the pool's Lease");
    lines.Set("pool.lease", CheckOutcome::kWarn, text);
  }
  if (!harvester.same_nodes.empty()) {
    lines.Expect("pool.same_nodes", "nodes with " + IdentityOf(policy).ToString());
    lines.Set("pool.same_nodes", CheckOutcome::kWarn, SameNodesText(harvester.same_nodes),
              "give each pool a node_class, datacenter or node_pool of its own");
  }
  if (policy.dry_run) {
    lines.Expect(kDryRun, "dry-run");
    lines.Set(kDryRun, CheckOutcome::kWarn, kDryRunMeans,
              "set it to \"false\" once you agree with the plans in the agent's log");
  }
  if (harvester.vms.has_value()) {
    const Joins joins = JoinsOf(*harvester.vms);
    CheckBootTime(policy, joins, &lines);
    CheckAnnotation(*harvester.vms, harvester::kProtectAnnotation, "pool.protected",
                    "protected VMs", &lines);
    CheckAnnotation(*harvester.vms, harvester::kDeleteFirstAnnotation, "pool.delete_first",
                    "VMs to delete first", &lines);
    if (has_tokens) CheckTokenLifetime(policy, joins, &lines);
  }
  if (nomad.nodes.has_value()) {
    CheckHostVolumes(policy, *nomad.nodes, &lines);
    if (!policy.ready_drivers.empty()) CheckReadyDrivers(policy, *nomad.nodes, &lines);
  }
  if (!nomad.cluster_problem.ok()) {
    lines.Set(kCluster, CheckOutcome::kFail, base::Message(nomad.cluster_problem),
              "let /.well-known/jwks.json through, and see Nomad's log: by its keys two Nomad "
              "clusters are told apart");
  } else if (harvester.vms.has_value() && nomad.cluster.has_value()) {
    CheckCluster({.ns = policy.ns, .pool = policy.pool}, harvester, nomad, &lines);
  }
  CheckClocks(harvester, nomad, &lines);
  return std::move(lines).Take(!harvester.vms.has_value() && !nomad.nodes.has_value()
                                   ? "the pool's VMs and nodes could not be read"
                               : harvester.vms.has_value() ? "Nomad could not be read"
                                                           : "the pool's VMs could not be read");
}

}  // namespace nomad_harvester::scaling
