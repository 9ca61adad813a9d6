// SPDX-License-Identifier: Apache-2.0
#include "soak.h"

#include <algorithm>
#include <utility>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/runtime/random.h"

#include "nlohmann/json.hpp"
#include "support/hosts.h"
#include "support/seeded_random.h"
#include "vm_facts.h"

namespace nomad_harvester::scenario {
namespace {

using simulator::Fault;
using simulator::RequestInfo;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr base::Duration kTick = seconds(10);
constexpr std::size_t kTranscriptLines = 250;
constexpr std::int64_t kLargestPool = 6;
// How long a request and its retries may take from the last read of a node to a deletion.
constexpr base::Duration kOperatorSlack = minutes(2);
// Nomad's collector and KubeVirt change their objects at rest, too: a list is then read again. The
// clock of each pool that replaced VMs by itself rings once more.
constexpr int kOwnChanges = 40;

// Keeps the last lines of a long log.
class LastLogLines final : public log::Sink {
 public:
  void Write(const log::Record& record) override {
    lines_.push_back(log::FormatPlain(record));
    if (lines_.size() > kTranscriptLines) lines_.pop_front();
  }
  std::string Text() const {
    std::string text;
    for (const std::string& line : lines_) text += line + "\n";
    return text;
  }

 private:
  std::deque<std::string> lines_;
};

struct Pool {
  std::string name;
  scaling::StringMap policy;
  std::int64_t wanted = 0;
};

std::vector<Pool> MakePools() {
  std::vector<Pool> pools;
  for (const char* name : {"web", "batch", "cache"}) {
    Pool& pool = pools.emplace_back(Pool{.name = name, .policy = PolicyFor(name)});
    pool.policy["node_drain_deadline"] = "2m";
    pool.policy["drain_grace"] = "30s";
    pool.policy["join_timeout"] = "5m";
    pool.policy["replace_drifted"] = "rolling";
    pool.policy["on_host_maintenance"] = "evacuate";
  }
  pools[0].policy["deletion_holds"] = "vpn";
  pools[0].policy["hold_timeout"] = "3m";
  pools[1].policy["force_after_deadline"] = "false";
  pools[1].policy["max_scale_in"] = "2";
  pools[1].policy["max_surge"] = "0";
  pools[1].policy["expire_after"] = "2h";
  pools[2].policy["node_selector_strategy"] = "newest_create_index";
  pools[2].policy["replace_unhealthy_after"] = "3m";
  pools[2].policy["max_scale_out"] = "3";
  pools[2].policy["max_surge"] = "2";
  return pools;
}

class Soak {
 public:
  explicit Soak(const SoakOptions& options)
      : options_(options),
        random_(support::MakeSeededRandom(options.seed)),
        cluster_random_(support::MakeSeededRandom(options.seed + 1)),
        dice_(*random_),
        cluster_(clock_, *cluster_random_, support::TwoHosts()),
        invariants_(clock_, cluster_),
        bystanders_(clock_, cluster_),
        operators_(dice_, clock_, cluster_, bystanders_),
        log_(std::make_shared<LastLogLines>()),
        pools_(MakePools()) {
    invariants_.ExpectLateRequests();
    invariants_.ExpectOperators(kOperatorSlack);
  }

  SoakResult Run() {
    StartProcess();
    RunJobs();
    cluster_.SetFaultHook([this](const RequestInfo& request) { return OnRequest(request); });
    const base::MonoTime begun = clock_.Now();
    cluster_.ResetCounters();
    for (int action = 0; action < options_.actions && invariants_.violations().empty(); ++action) {
      Action();
      BuryTheDead();
      clock_.Advance(dice_.Between(seconds(0), seconds(30)));
    }
    result_.problems = invariants_.violations();
    result_.lasted = clock_.Now() - begun;
    result_.requests = cluster_.RequestCount();
    if (result_.problems.empty()) ComeToRest();
    result_.checks = invariants_.checks();
    JudgeCosts();
    for (const auto& [act, count] : operators_.acts()) result_.counts["operator: " + act] = count;
    if (!result_.problems.empty()) result_.transcript = Transcript();
    return std::move(result_);
  }

 private:
  // What a process is doing while this object exists; without a pool: background work.
  class Doing {
   public:
    Doing(Soak& soak, std::string process, std::string pool) : soak_(soak) {
      soak_.doing_.emplace_back(std::move(process), std::move(pool));
    }
    ~Doing() { soak_.doing_.pop_back(); }
    Doing(const Doing&) = delete;
    Doing& operator=(const Doing&) = delete;

   private:
    Soak& soak_;
  };
  bool IsBusy(const std::string& process, const std::string& pool) const {
    return std::any_of(doing_.begin(), doing_.end(), [&](const auto& doing) {
      return doing.first == process && (doing.second.empty() || doing.second == pool);
    });
  }

  // A service manager restarts an agent; a second agent may run during a hand-over.
  void StartProcess() {
    processes_.push_back(std::make_unique<Process>(clock_, cluster_, ++started_, log_));
    processes_.back()->SkewWallClock(dice_.Between(minutes(-2), minutes(2)));
  }

  void RunJobs() {
    simulator::JobSpec job;
    job.id = "api";
    job.count = 6;
    cluster_.RunJob(job);
    job.id = "batch";
    job.type = "batch";
    job.count = 4;
    job.poststop = seconds(10);
    cluster_.RunJob(job);
    // It runs longer than a drain that ends at its deadline.
    job.id = "slow";
    job.type = "service";
    job.count = 1;
    job.poststop = seconds(100);
    cluster_.RunJob(job);
  }

  void Action() {
    const std::size_t kind = dice_.Below(103);
    if (kind < 60) {
      Tick(*processes_[dice_.Below(processes_.size())], pools_[dice_.Below(pools_.size())]);
    } else if (kind < 85) {
      operators_.Act();
    } else if (kind < 90) {
      cluster_.NeverJoin(1);
    } else if (kind < 94) {
      cluster_.FailStart(1, "ErrorUnschedulable", "no host has room");
    } else if (kind < 96) {
      processes_[dice_.Below(processes_.size())]->Die();
      ++result_.counts["kill between requests"];
    } else if (kind < 98 && processes_.size() < 2) {
      StartProcess();
      ++result_.counts["second process"];
    } else if (kind < 100) {
      LoseSystem();
    } else {
      ChangeTemplate(pools_[dice_.Below(pools_.size())]);
    }
  }

  // The pool's VMs drift, and its policy replaces them.
  void ChangeTemplate(Pool& pool) {
    std::string& memory = pool.policy["memory_request"];
    memory = memory == "24Gi" ? "16Gi" : "24Gi";
    ++result_.counts["a new template"];
  }

  void LoseSystem() {
    ++result_.counts["system away"];
    const base::Duration away = dice_.Between(seconds(5), minutes(6));
    if (dice_.Percent(50)) {
      cluster_.SetNomadReachable(false);
      clock_.After(away, [this] { cluster_.SetNomadReachable(true); });
    } else {
      cluster_.SetHarvesterReachable(false);
      clock_.After(away, [this] { cluster_.SetHarvesterReachable(true); });
    }
  }

  // Calls Status, and Scale as the agent would.
  void Tick(Process& process, Pool& pool) {
    if (dice_.Percent(25)) pool.wanted = static_cast<std::int64_t>(dice_.Below(kLargestPool + 1));
    const auto status = process.Status(pool.policy);
    ++result_.counts["Status, " + std::string(!status.ok()    ? "error"
                                              : status->ready ? "ready"
                                                              : "not ready")];
    if (dice_.Percent(20)) return;
    {
      const Doing doing(*this, process.name(), "");
      process.RunBackground();
    }
    if (!status.ok() || !status->ready || status->count == pool.wanted) return;
    const Doing doing(*this, process.name(), pool.name);
    const Invariants::Scale open(invariants_, pool.name, pool.wanted);
    const base::MonoTime begun = clock_.Now();
    const absl::Status scaled = process.Scale(pool.wanted, pool.policy);
    result_.longest_scale = std::max(result_.longest_scale, clock_.Now() - begun);
    ++result_.counts["Scale, " + absl::StatusCodeToString(scaled.code())];
  }

  Fault OnRequest(const RequestInfo& request) {
    if (dice_.Percent(0.2)) {
      ++result_.counts["kill at a request"];
      Kill(request.client);
      return dice_.Percent(50) ? Fault::ApplyThenDie() : Fault::Die();
    }
    if (dice_.Percent(1)) operators_.Act();
    if (depth_ == 0 && request.resource != "leases" && dice_.Percent(0.5)) Meanwhile(request);
    if (!dice_.Percent(options_.faulty_percent)) return Fault::None();
    ++result_.counts["faulty request"];
    return MakeFault(dice_, clock_, request);
  }

  // Makes another call while a request of this one is open: for another pool, or by the other
  // process.
  void Meanwhile(const RequestInfo& request) {
    ++depth_;
    Process& process = *processes_[dice_.Below(processes_.size())];
    Pool& pool = pools_[dice_.Below(pools_.size())];
    // In one thread nothing can wait for what it interrupts: the pool's Scale, or a list of Nomad
    // that the pools of a process share.
    const bool shared = request.system == simulator::System::kNomad && request.verb == "list";
    if (!cluster_.dead(process.name()) && !cluster_.dead(request.client) &&
        !IsBusy(process.name(), pool.name) && !(shared && request.client == process.name())) {
      ++result_.counts["a call meanwhile"];
      Tick(process, pool);
    }
    --depth_;
  }

  void Kill(const std::string& client) {
    for (const auto& process : processes_) {
      if (process->name() == client) process->Die();
    }
  }

  void BuryTheDead() {
    std::erase_if(processes_, [this](const auto& p) { return cluster_.dead(p->name()); });
    if (processes_.empty()) StartProcess();
  }

  // Faults end, operators leave; one agent continues.
  void ComeToRest() {
    cluster_.SetFaultHook(nullptr);
    clock_.Advance(minutes(9));
    while (processes_.size() > 1) {
      processes_.back()->Die();
      processes_.pop_back();
    }
    if (dice_.Percent(50)) {
      processes_.front()->Die();
      processes_.clear();
    }
    BuryTheDead();
    // Cancels planned failures of starts and joins that have not happened yet.
    cluster_.FailStart(0, "", "");
    operators_.Leave();
    for (Pool& pool : pools_) {
      // What has begun is finished.
      pool.policy["replace_drifted"] = "on_scale_in";
      pool.policy.erase("expire_after");
    }
    const base::MonoTime begun = clock_.Now();
    const int requests = cluster_.RequestCount();
    int calm = 0;
    while (calm < 3 && clock_.Now() - begun <= kSoakRestTime) {
      calm = TickAll() ? calm + 1 : 0;
      clock_.Advance(kTick);
    }
    if (calm < 3) result_.problems.push_back("I5: it does not come to rest");
    result_.rest_lasted = clock_.Now() - begun;
    result_.rest_requests = cluster_.RequestCount() - requests;
    StayCalm();
    for (const Pool& pool : pools_) {
      for (std::string& problem : invariants_.AtRest({.pool = pool.name, .count = pool.wanted})) {
        if (std::find(result_.problems.begin(), result_.problems.end(), problem) ==
            result_.problems.end()) {
          result_.problems.push_back(std::move(problem));
        }
      }
    }
    for (std::string& change : bystanders_.Changes()) {
      result_.problems.push_back(std::move(change));
    }
  }

  // Ten minutes in which nothing happens.
  void StayCalm() {
    const int requests = cluster_.RequestCount();
    for (int tick = 0; tick < 60; ++tick) {
      for (const Pool& pool : pools_) {
        processes_.front()->Status(pool.policy).IgnoreError();
        processes_.front()->RunBackground();
        ++result_.calm_statuses;
      }
      clock_.Advance(kTick);
    }
    result_.calm_requests = cluster_.RequestCount() - requests;
  }

  void JudgeCosts() {
    const auto judge = [this](bool within, const char* what) {
      if (!within) result_.problems.push_back(std::string("L7: ") + what);
    };
    const double hours = std::chrono::duration<double, std::ratio<3600>>(result_.lasted).count();
    judge(result_.requests <= kSoakRequestsPerHour * std::max(hours, 1.0), "too many requests");
    judge(result_.longest_scale <= kSoakLongestScale, "a Scale lasted too long");
    judge(result_.rest_lasted <= kSoakRestTime, "it took too long to come to rest");
    judge(result_.rest_requests <= kSoakRestRequests, "it took too many requests to come to rest");
    judge(result_.calm_requests <= kSoakCalmRequestsPerStatus * result_.calm_statuses + kOwnChanges,
          "pools at rest take more than two requests for each Status");
  }

  std::int64_t Members(const std::string& pool) const {
    const std::vector<nlohmann::json> vms = cluster_.Vms();
    return std::count_if(vms.begin(), vms.end(), [&](const nlohmann::json& vm) {
      return PoolOf(vm) == pool && NamespaceOf(vm) == kNamespace && IsMember(vm);
    });
  }

  // True if every pool has its requested count, and no VM beside it.
  bool TickAll() {
    bool calm = true;
    for (const Pool& pool : pools_) {
      const auto status = processes_.front()->Status(pool.policy);
      processes_.front()->RunBackground();
      const bool is_done = status.ok() && status->ready && status->count == pool.wanted;
      if (is_done && Members(pool.name) == pool.wanted) continue;
      calm = false;
      if (is_done || !status.ok() || !status->ready) continue;
      const Invariants::Scale open(invariants_, pool.name, pool.wanted);
      const absl::Status scaled = processes_.front()->Scale(pool.wanted, pool.policy);
      log_->Write({.time = clock_.WallNow(), .message = "The agent is told: " + scaled.ToString()});
    }
    return calm;
  }

  std::string Transcript() const {
    const std::vector<std::string> journal = cluster_.Journal();
    std::string transcript = "--- the cluster, the end of it\n";
    for (std::size_t i = journal.size() - std::min(journal.size(), kTranscriptLines);
         i < journal.size(); ++i) {
      transcript += journal[i] + "\n";
    }
    transcript += "--- the work\n";
    for (const nlohmann::json& allocation : cluster_.Allocations()) {
      if (!IsActive(allocation)) continue;
      transcript += base::GetString(allocation, "JobID") + " on " +
                    base::GetString(allocation, "NodeName") + ": " +
                    base::GetString(allocation, "ClientStatus") + ", wanted " +
                    base::GetString(allocation, "DesiredStatus") + "\n";
    }
    return transcript + "--- the plugin, the end of it\n" + log_->Text();
  }

  const SoakOptions options_;
  support::FakeClock clock_;
  const std::unique_ptr<runtime::Random> random_;
  const std::unique_ptr<runtime::Random> cluster_random_;
  Dice dice_;
  simulator::Cluster cluster_;
  Invariants invariants_;
  Bystanders bystanders_;
  Operators operators_;
  const std::shared_ptr<LastLogLines> log_;
  std::vector<Pool> pools_;
  std::vector<std::unique_ptr<Process>> processes_;
  int started_ = 0;
  int depth_ = 0;
  std::vector<std::pair<std::string, std::string>> doing_;
  SoakResult result_;
};

}  // namespace

SoakResult RunSoak(const SoakOptions& options) { return Soak(options).Run(); }

std::string DescribeCosts(const SoakResult& result) {
  const auto of = [](const std::string& is, const std::string& most) {
    return is + " (at most " + most + ")";
  };
  const double hours = std::chrono::duration<double, std::ratio<3600>>(result.lasted).count();
  const int per_hour = static_cast<int>(result.requests / std::max(hours, 1.0));
  return of(std::to_string(per_hour), std::to_string(kSoakRequestsPerHour)) +
         " requests an hour, longest Scale " +
         of(base::FormatGoDuration(result.longest_scale),
            base::FormatGoDuration(kSoakLongestScale)) +
         ", to rest in " +
         of(base::FormatGoDuration(result.rest_lasted), base::FormatGoDuration(kSoakRestTime)) +
         " with " + of(std::to_string(result.rest_requests), std::to_string(kSoakRestRequests)) +
         " requests, then " + std::to_string(result.calm_requests) + " requests for " +
         std::to_string(result.calm_statuses) + " Status calls";
}

}  // namespace nomad_harvester::scenario
