// SPDX-License-Identifier: Apache-2.0
//
// Two agents with different policies in one namespace of Harvester: for two pools, on one Nomad
// cluster or on two; for one pool, with other settings, or with the wrong Nomad. While one of them
// acts, and after it was killed, the other one must leave alone what is not its own (S5, C15).

#include <algorithm>
#include <map>
#include <string_view>

#include "nomad_harvester/base/json.h"

#include "sweep.h"
#include "vm_facts.h"

namespace nomad_harvester::scenario {
namespace {

constexpr char kSecondNomad[] = "second";
// The number of its process: the harness' own ones count from 1.
constexpr int kNeighbour = 100;
// A full sweep visits every fourth point: the other sweeps visit all of them.
constexpr int kStride = 4;

// What happens to the first agent when the neighbour's turn comes.
enum class FirstProcess { kWaits, kWasKilled };
// The index of another Nomad decides whether it may conclude anything from a 404 (C15).
enum class Nomad { kSame, kBehind, kAhead };

std::string_view TitleOf(Nomad nomad) {
  static constexpr std::string_view kNames[] = {"the same Nomad", "a Nomad that is behind",
                                                "a Nomad that is ahead"};
  return kNames[static_cast<std::size_t>(nomad)];
}

// Another agent with a process of its own.
class Agent {
 public:
  Agent(Harness& h, scaling::StringMap policy, const std::string& nomad = "")
      : h_(h),
        policy_(std::move(policy)),
        process_(h.clock, h.cluster, kNeighbour, h.log, {.nomad = nomad}) {}

  const std::string& name() const { return process_.name(); }
  const std::string& pool() const { return policy_.at("node_group_name"); }

  absl::Status Scale(std::int64_t count) {
    const Invariants::Scale open(h_.invariants, pool(), count);
    return process_.Scale(count, policy_);
  }
  // With the work that the background then does.
  void Reach(std::int64_t count) {
    const absl::Status scaled = Scale(count);
    EXPECT_TRUE(scaled.ok()) << scaled;
    Tick(6);
  }
  // What the agent sees; the background has worked.
  scaling::TargetStatus Observation() {
    const auto status = process_.Status(policy_);
    EXPECT_TRUE(status.ok()) << status.status();
    process_.RunBackground();
    return status.value_or(scaling::TargetStatus());
  }
  void Tick(int ticks) {
    for (; ticks > 0; --ticks) {
      Observation();
      h_.clock.Advance(seconds(10));
    }
  }

 private:
  Harness& h_;
  const scaling::StringMap policy_;
  Process process_;
};

// An agent of another cluster has VMs that join it.
scaling::StringMap WithNomad(scaling::StringMap policy, const std::string& nomad) {
  if (!nomad.empty()) policy["user_data"] += "    nomad_cluster = \"" + nomad + "\"\n";
  return policy;
}

// The name of the cluster.
std::string Make(Harness& h, Nomad nomad) {
  if (nomad == Nomad::kSame) return "";
  h.cluster.SetNomadKeys({"key-of-second"}, kSecondNomad);
  for (int i = 0; nomad == Nomad::kAhead && i < 300; ++i) {
    h.cluster.RunJob({.id = "busy", .count = 0, .nomad = kSecondNomad});
  }
  return kSecondNomad;
}

bool IsOfPool(const Harness& h, const RequestInfo& request, const std::string& pool) {
  if (request.resource == "leases") return request.name.ends_with("-" + pool);
  // Nodes have the names of their VMs.
  const std::string name = request.system == System::kNomad
                               ? base::GetString(h.cluster.Node(request.name), "Name")
                               : request.name;
  return name.starts_with(pool + "-");
}

std::string Describe(const RequestInfo& request) {
  return request.client + ": " + request.verb + " " + request.resource + " " + request.name;
}

// Runs the scenario's Scale; at that effect of it, `neighbour` has its turn. `see` gets each
// request with an effect, also those that follow while the pool comes to rest.
class Meeting {
 public:
  Meeting(const Scenario& scenario, Harness& h, std::function<void(const RequestInfo&)> see)
      : scenario_(scenario), h_(h), see_(std::move(see)) {}
  ~Meeting() { h_.cluster.SetFaultHook(nullptr); }
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  void At(int effect, FirstProcess first, const std::function<void()>& turn) {
    Process& process = h_.process();
    Points points(process.name(), Points::Of::kEffects);
    bool met = false;
    h_.cluster.SetFaultHook([&](const RequestInfo& request) {
      if (request.has_effect) see_(request);
      if (met || points.Number(request) != effect) return Fault::None();
      met = true;
      if (first == FirstProcess::kWaits) {
        turn();
        return Fault::None();
      }
      process.Die();
      return effect / kStride % 2 == 0 ? Fault::ApplyThenDie() : Fault::Die();
    });
    h_.Scale(scenario_.count).IgnoreError();
    EXPECT_TRUE(met);
    h_.cluster.SetFaultHook([this](const RequestInfo& request) {
      if (request.has_effect) see_(request);
      return Fault::None();
    });
    if (first == FirstProcess::kWasKilled) {
      turn();
      h_.Restart();
    }
    ComeToRest(scenario_, h_);
  }

 private:
  const Scenario& scenario_;
  Harness& h_;
  const std::function<void(const RequestInfo&)> see_;
};

// Its pool shrinks as if it were alone. It grows later: what the scenario has planned for the next
// VMs is not for this one's.
void WorkAlone(Agent& neighbour) {
  for (const int count : {2, 1}) neighbour.Reach(count);
}

void LiveBeside(const Scenario& scenario, Nomad nomad, int effect, FirstProcess first) {
  SCOPED_TRACE("beside a pool of " + std::string(TitleOf(nomad)) + " at effect " +
               std::to_string(effect) + (first == FirstProcess::kWaits ? "" : ", killed"));
  Harness h;
  const std::string cluster = Make(h, nomad);
  scaling::StringMap policy = WithNomad(PolicyFor("queue"), cluster);
  policy["node_drain_deadline"] = "1m";
  policy["drain_grace"] = "20s";
  Agent neighbour(h, policy, cluster);
  h.neighbour = neighbour.pool();
  neighbour.Reach(3);
  h.cluster.RunJob({.id = "of-queue", .count = 3, .nomad = cluster});
  scenario.prepare(h);
  Meeting meeting(scenario, h, [&](const RequestInfo& request) {
    const std::string pool = request.client == neighbour.name() ? neighbour.pool() : "web";
    EXPECT_TRUE(IsOfPool(h, request, pool)) << Describe(request) << "\n" << h.Transcript();
  });
  meeting.At(effect, first, [&] { WorkAlone(neighbour); });
  neighbour.Reach(2);
  h.CheckAtRest({.pool = neighbour.pool(), .count = 2});
}

bool HasVms(const Harness& h) {
  const auto vms = h.Vms();
  return std::any_of(vms.begin(), vms.end(),
                     [](const json& vm) { return IsMember(vm) && !IsTerminating(vm); });
}

std::string ActionOf(const Harness& h) {
  const auto leases = h.Leases();
  return leases.empty() ? "" : AnnotationOf(leases.front(), kActionKey);
}

// The first agent's process holds the Lease.
bool IsHeld(Harness& h) {
  const auto leases = h.Leases();
  return !leases.empty() && HolderOf(leases.front()) == h.process().name();
}

// A pool without VMs belongs to no Nomad yet: whoever scales it first owns it.
void AskInVain(Harness& h, Agent& stranger, int ticks) {
  const std::string action = ActionOf(h);
  for (int tick = 0; tick < ticks && HasVms(h); ++tick) {
    EXPECT_FALSE(stranger.Observation().ready) << h.Transcript();
    const absl::Status scaled = stranger.Scale(tick % 2 == 0 ? 0 : 9);
    EXPECT_TRUE(absl::IsUnavailable(scaled) || absl::IsAborted(scaled)) << "C15: " << scaled;
    h.clock.Advance(seconds(10));
  }
  EXPECT_EQ(ActionOf(h), action) << "C15: the action of the Nomad that owns the VMs";
}

void AskFromTheWrongNomad(const Scenario& scenario, Nomad nomad, int effect, FirstProcess first) {
  SCOPED_TRACE("asked from " + std::string(TitleOf(nomad)) + " at effect " +
               std::to_string(effect) + (first == FirstProcess::kWaits ? "" : ", killed"));
  Harness h;
  scenario.prepare(h);
  const std::string cluster = Make(h, nomad);
  // One that could be the node of any VM that has none here.
  h.cluster.AddForeignNode({.name = "any", .node_class = "web", .nomad = cluster});
  Agent stranger(h, WithNomad(h.policy, cluster), cluster);
  Meeting meeting(scenario, h, [&](const RequestInfo& request) {
    if (request.client != stranger.name()) return;
    EXPECT_EQ(request.resource, "leases") << "C15: " << Describe(request) << "\n" << h.Transcript();
  });
  meeting.At(effect, first, [&] { AskInVain(h, stranger, 8); });
  AskInVain(h, stranger, 2);
  h.CheckAtRest(scenario.count);
}

void Toggle(scaling::StringMap* policy, const std::string& key, bool by_default) {
  const auto value = policy->find(key);
  const bool is = value == policy->end() ? by_default : value->second == "true";
  (*policy)[key] = is ? "false" : "true";
}

// What a removal depends on.
scaling::StringMap WithOtherSettings(scaling::StringMap policy) {
  policy["node_drain_deadline"] = "90s";
  policy["drain_grace"] = "30s";
  Toggle(&policy, "node_purge", false);
  Toggle(&policy, "force_after_deadline", true);
  return policy;
}

// The marks of the pool's VMs by the ids of their actions and the VMs' names.
std::map<std::string, std::string> MarksOf(const Harness& h) {
  std::map<std::string, std::string> marks;
  for (const json& vm : h.Vms()) {
    if (!IsMarked(vm)) continue;
    marks.emplace(NameOf(vm) + " " + base::GetString(MarkOf(vm), "action"),
                  AnnotationOf(vm, kMarkKey));
  }
  return marks;
}

void DecideOtherwise(const Scenario& scenario, int effect, int effects, FirstProcess first) {
  SCOPED_TRACE("another policy at effect " + std::to_string(effect) +
               (first == FirstProcess::kWaits ? "" : ", killed"));
  Harness h;
  scenario.prepare(h);
  Agent other(h, WithOtherSettings(h.policy));
  std::map<std::string, std::string> marks;
  Meeting meeting(scenario, h, [&](const RequestInfo& request) {
    const std::string vm = request.system == System::kNomad
                               ? base::GetString(h.cluster.Node(request.name), "Name")
                               : request.name;
    const json object = h.cluster.Vm(vm);
    if (request.client != other.name() || !object.is_object() || !IsMarked(object)) return;
    const std::string key = vm + " " + base::GetString(MarkOf(object), "action");
    if (const auto mark = marks.find(key); mark != marks.end()) {
      EXPECT_EQ(AnnotationOf(object, kMarkKey), mark->second) << "S5: " << Describe(request);
    }
    if (request.resource != "drain") return;
    const auto body = base::ParseJson(request.body, "the drain");
    const json* purge = base::FindPath(*body, {"Meta", "purge"});
    if (purge == nullptr) return;
    EXPECT_EQ(*purge == "true", base::GetBool(MarkOf(object), "purge")) << "S5: " << request.body;
  });
  meeting.At(effect, first, [&] {
    marks = MarksOf(h);
    for (int tick = 0; tick < 12; ++tick) {
      const scaling::TargetStatus seen = other.Observation();
      const bool held = first == FirstProcess::kWaits && effect < effects && IsHeld(h);
      if (seen.ready || held) {
        const absl::Status scaled = other.Scale(scenario.count);
        EXPECT_TRUE(!held || absl::IsAborted(scaled)) << "C11: " << scaled;
      }
      if (first == FirstProcess::kWaits) return;
      h.clock.Advance(seconds(10));
    }
  });
}

std::vector<int> ChooseSome(int points, int shift) {
  std::vector<int> chosen = Choose(points, 1, shift);
  std::vector<int> some = chosen;
  std::erase_if(some, [&](int point) { return point % kStride != shift % kStride; });
  return some.empty() ? chosen : some;
}

// The other one, by turns.
Nomad OtherAt(int effect, FirstProcess first) {
  return (effect / kStride + static_cast<int>(first)) % 2 == 0 ? Nomad::kBehind : Nomad::kAhead;
}

class Neighbours : public Sweep {
 protected:
  // `visit` gets an effect and what happens to the first agent there.
  void VisitAll(const std::string& title, int shift,
                const std::function<void(int, FirstProcess)>& visit) {
    const int effects = Measure(GetParam(), Points::Of::kEffects);
    std::size_t visited = 0;
    for (const FirstProcess first : {FirstProcess::kWaits, FirstProcess::kWasKilled}) {
      for (const int effect : ChooseSome(effects, shift + 2 * static_cast<int>(first))) {
        visit(effect, first);
        ++visited;
        if (HasFailure()) return;
      }
    }
    ReportVisits(title, GetParam(), visited, 2 * effects);
  }
};

TEST_P(Neighbours, S5_an_agent_leaves_another_pool_alone) {
  VisitAll("another pool", 0, [](int effect, FirstProcess first) {
    LiveBeside(GetParam(), Nomad::kSame, effect, first);
  });
}

TEST_P(Neighbours, C15_an_agent_of_another_nomad_leaves_this_pool_alone) {
  VisitAll("a pool of another Nomad", 1, [](int effect, FirstProcess first) {
    LiveBeside(GetParam(), OtherAt(effect, first), effect, first);
  });
}

TEST_P(Neighbours, C15_an_agent_of_the_wrong_nomad_changes_nothing) {
  VisitAll("the wrong Nomad", 2, [](int effect, FirstProcess first) {
    AskFromTheWrongNomad(GetParam(), OtherAt(effect, first), effect, first);
  });
}

TEST_P(Neighbours, S5_an_agent_with_other_settings_finishes_what_was_begun_by_its_mark) {
  const int effects = Measure(GetParam(), Points::Of::kEffects);
  VisitAll("other settings", 3, [&](int effect, FirstProcess first) {
    DecideOtherwise(GetParam(), effect, effects, first);
  });
}

NOMAD_HARVESTER_INSTANTIATE_SWEEP(Neighbours);

}  // namespace
}  // namespace nomad_harvester::scenario
