// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

#include <algorithm>
#include <utility>

#include <gtest/gtest.h>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/harvester/metadata.h"

#include "support/seeded_random.h"
#include "vm_facts.h"

namespace nomad_harvester::scenario {
namespace {

constexpr base::Duration kTick = seconds(10);
// The time until the next round, of a trouble that has lasted for less than half an hour (L7).
constexpr base::Duration kRound = minutes(5);

bool WasNeverReady(const json& vm) {
  return !IsMarked(vm) && (AnnotationOf(vm, Key("joined-at")).empty() ||
                           AnnotationOf(vm, Key("ready-at")) == harvester::kNotReadyYet);
}

}  // namespace

class Harness::Meter {
 public:
  Meter(const Harness& h, const Budget& budget)
      : h_(h), budget_(budget), begun_(h.clock.Now()), requests_(h.cluster.RequestCount()) {}

  bool IsWithin() const {
    return h_.clock.Now() - begun_ <= budget_.time && Requests() <= budget_.requests;
  }
  std::string Text() const {
    return base::FormatGoDuration(h_.clock.Now() - begun_) + " and " + std::to_string(Requests()) +
           " requests have passed";
  }

 private:
  // The counters may have been reset since.
  int Requests() const {
    const int now = h_.cluster.RequestCount();
    return now >= requests_ ? now - requests_ : now;
  }

  const Harness& h_;
  const Budget budget_;
  const base::MonoTime begun_;
  const int requests_;
};

Harness::Harness(simulator::Options options, const Interleaving& interleaving)
    : random(support::MakeSeededRandom(42)),
      cluster(clock, *random, std::move(options)),
      log(std::make_shared<support::RecordingSink>()),
      policy(PolicyFor("web")),
      invariants(clock, cluster),
      bystanders(clock, cluster),
      interleaving_(interleaving) {
  // The history of removed VMs is off unless a test allows it (rule T3).
  cluster.Forbid("create", "configmaps");
  cluster.Forbid("patch", "configmaps");
  Start();
}

Harness::~Harness() {
  for (const std::string& violation : invariants.violations()) ADD_FAILURE() << violation;
  for (const std::string& change : bystanders.Changes()) ADD_FAILURE() << change;
}

Process& Harness::Start() {
  processes_.push_back(std::make_unique<Process>(
      clock, cluster, ++started_, log,
      ProcessOptions{
          .config = config, .metrics_sink = metrics_sink, .interleaving = interleaving_}));
  return process();
}

void Harness::Restart() {
  while (!processes_.empty()) EndNewest();
  Start();
}

// A name is never reused, so that delayed requests of the killed process still find no live one.
void Harness::EndNewest() {
  processes_.back()->Die();
  processes_.pop_back();
}

void Harness::ScaleAndDieAt(std::int64_t count, const std::string& verb,
                            const std::string& resource, bool applied) {
  cluster.SetFaultHook([&](const RequestInfo& request) {
    if (request.verb != verb || request.resource != resource) return Fault::None();
    process().Die();
    return applied ? Fault::ApplyThenDie() : Fault::Die();
  });
  EXPECT_FALSE(Scale(count).ok());
  cluster.SetFaultHook(nullptr);
}

void Harness::OnEachRequest(std::function<void(const RequestInfo&)> fn) {
  cluster.SetFaultHook([fn = std::move(fn)](const RequestInfo& request) {
    fn(request);
    return Fault::None();
  });
}

void Harness::Inject(const Fault& fault, std::function<bool(const RequestInfo&)> is_meant) {
  cluster.SetFaultHook([fault, is_meant = std::move(is_meant)](const RequestInfo& request) {
    return is_meant(request) ? fault : Fault::None();
  });
}

absl::Status Harness::Accept(std::int64_t count, const std::string& meta_json,
                             std::optional<scaling::RemovalConsent> consent) {
  const Invariants::Scale open(invariants, policy.at("node_group_name"), count);
  return process().Scale(count, policy, meta_json, std::move(consent));
}

absl::Status Harness::Scale(std::int64_t count, const std::string& meta_json) {
  const base::WallTime begun = clock.WallNow();
  const Invariants::Scale open(invariants, policy.at("node_group_name"), count);
  const Process& maker = process();
  const absl::Status accepted = process().Scale(count, policy, meta_json);
  open.SetAccepted();
  if (!accepted.ok()) return accepted;
  Settle();
  if (process().IsDead()) return absl::CancelledError("the process was killed");
  const absl::Status failed = FailedSince(begun);
  // That a VM is broken and stays is told by the process that has made it.
  if (failed.ok() && &process() == &maker) open.CheckDone();
  return failed;
}

absl::Status Harness::FailedSince(base::WallTime begun) const {
  for (const json& lease : Leases()) {
    const auto error = harvester::ParseErrorRecord(AnnotationOf(lease, Key("last-error")));
    const bool is_ours = LabelOf(lease, Key("pool")) == policy.at("node_group_name");
    if (error.ok() && is_ours && error->at >= begun) return absl::InternalError(error->text);
  }
  return absl::OkStatus();
}

void Harness::Reach(std::int64_t count) {
  const absl::Status scaled = Scale(count);
  ASSERT_TRUE(scaled.ok()) << scaled << "\n" << Transcript();
  WaitUntilReady();
}

void Harness::Settle(const Budget& budget) {
  const Meter meter(*this, budget);
  const auto has = [](const scaling::TargetStatus& status, const char* what) {
    const auto found = status.meta.find(what);
    return found != status.meta.end() && found->second != "0";
  };
  base::MonoTime busy = clock.Now();
  while (meter.IsWithin() && !process().IsDead()) {
    const auto status = Status();
    ASSERT_TRUE(status.ok()) << status.status();
    process().RunBackground();
    const std::vector<json> vms = Vms();
    if (status->meta.empty() || std::any_of(vms.begin(), vms.end(), IsTerminating) ||
        has(*status, "harvester.pending") || has(*status, "harvester.draining")) {
      busy = clock.Now();
    } else {
      // They may stay for ever, or be waited for until the next round.
      const bool waits =
          has(*status, "harvester.leftovers") ||
          std::any_of(vms.begin(), vms.end(), [this](const json& vm) {
            const auto replaces = harvester::ParseReplaces(AnnotationOf(vm, Key("replaces")));
            return WasNeverReady(vm) || (replaces.ok() && !cluster.Vm(replaces->vm).is_null());
          });
      if (!waits || clock.Now() - busy >= kRound) return;
    }
    clock.Advance(kTick);
  }
  if (process().IsDead()) return;
  ADD_FAILURE() << "it does not settle: " << meter.Text() << "\n" << Transcript();
}

void Harness::Tick(base::Duration duration) {
  for (base::Duration passed{}; passed < duration; passed += kTick) {
    const auto status = Status();
    ASSERT_TRUE(status.ok()) << status.status();
    process().RunBackground();
    clock.Advance(kTick);
  }
}

void Harness::TickWithoutStatus(base::Duration duration) {
  for (base::Duration passed{}; passed < duration; passed += kTick) {
    process().RunBackground();
    clock.Advance(kTick);
  }
}

void Harness::WaitUntilReady(const Budget& budget) {
  const Meter meter(*this, budget);
  for (bool first = true; meter.IsWithin(); first = false) {
    const auto status = Status();
    ASSERT_TRUE(status.ok()) << status.status();
    process().RunBackground();
    if (status->ready && !first) return;
    clock.Advance(kTick);
  }
  ADD_FAILURE() << "it does not come to rest: " << meter.Text() << "\n" << Transcript();
}

void Harness::Converge(std::int64_t count, const Budget& budget) {
  const Meter meter(*this, budget);
  for (bool first = true; meter.IsWithin(); first = false) {
    const auto status = Status();
    ASSERT_TRUE(status.ok()) << status.status();
    process().RunBackground();
    if (status->ready && status->count == count && !first) {
      Settle(budget);
      // Background work may have removed a broken or unhealthy VM.
      const auto rest = Status();
      if (!rest.ok() || (rest->ready && rest->count == count)) return;
    }
    if (status->ready && status->count != count) {
      // An error is retried at the next tick, as the agent does.
      const absl::Status scaled = Accept(count);
      if (!scaled.ok()) log->Write({.time = clock.WallNow(), .message = scaled.ToString()});
    }
    clock.Advance(kTick);
  }
  ADD_FAILURE() << "it does not converge: " << meter.Text() << "\n" << Transcript();
}

void Harness::CheckAtRest(std::int64_t count) {
  CheckAtRest({.pool = policy.at("node_group_name"), .count = count});
}

void Harness::CheckAtRest(const Invariants::Rest& rest) {
  const std::vector<std::string> problems = invariants.AtRest(rest);
  for (const std::string& problem : problems) ADD_FAILURE() << problem;
  if (!problems.empty()) ADD_FAILURE() << Transcript();
}

std::vector<json> Harness::Vms() const {
  std::vector<json> vms = bystanders.Without(cluster.Vms());
  std::erase_if(vms,
                [this](const json& vm) { return !neighbour.empty() && PoolOf(vm) == neighbour; });
  return vms;
}

std::vector<std::string> Harness::VmNames() const {
  std::vector<std::string> names;
  for (const json& vm : Vms()) {
    names.push_back(base::GetString(vm["metadata"], "name"));
  }
  return names;
}

std::string Harness::NodeOf(const std::string& vm) const {
  return cluster.NodeIdOfVm(base::GetString(cluster.Vm(vm)["metadata"], "uid"));
}

std::string Harness::Transcript() const {
  std::string transcript = "--- the cluster\n";
  for (const std::string& line : cluster.Journal()) transcript += line + "\n";
  return transcript + "--- the plugin\n" + log->Text();
}

void Harness::RequireDocker() {
  policy["ready_drivers"] = "docker";
  invariants.RequireDriver("docker");
}

void Harness::UseTemplate() {
  for (const char* const key : {"image", "cpu_request", "memory_request", "networks"}) {
    policy.erase(key);
  }
  policy["vm_template"] = "default/worker";
}

void Harness::PutTemplate(const std::string& version, const std::string& memory,
                          const json& tolerations) {
  json object = json::parse(R"({
    "apiVersion": "harvesterhci.io/v1beta1", "kind": "VirtualMachineTemplateVersion",
    "metadata": {"namespace": "default"},
    "spec": {"templateId": "default/worker", "vm": {"spec": {"template": {"spec": {
      "domain": {"resources": {"limits": {"cpu": "2"}}, "devices": {
        "disks": [{"name": "a", "disk": {}}, {"name": "b", "disk": {}}],
        "interfaces": [{"name": "n", "masquerade": {}}]}},
      "networks": [{"name": "n", "pod": {}}],
      "volumes": [{"name": "a", "persistentVolumeClaim": {"claimName": "root"}},
                  {"name": "b", "persistentVolumeClaim": {"claimName": "data"}}]}}}}}})");
  object["metadata"]["name"] = version;
  json& vm = object["spec"]["vm"];
  vm["metadata"]["annotations"]["harvesterhci.io/volumeClaimTemplates"] = R"([
    {"metadata": {"name": "root", "annotations": {"harvesterhci.io/imageId": "default/ubuntu-24.04"}},
     "spec": {"resources": {"requests": {"storage": "20Gi"}}}},
    {"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": "5Gi"}}}}])";
  json& guest = vm["spec"]["template"]["spec"];
  guest["domain"]["resources"]["limits"]["memory"] = memory;
  if (!tolerations.empty()) guest["tolerations"] = tolerations;
  cluster.PutObject({{"apiVersion", "harvesterhci.io/v1beta1"},
                     {"kind", "VirtualMachineTemplate"},
                     {"metadata", {{"namespace", "default"}, {"name", "worker"}}},
                     {"spec", {{"defaultVersionId", "default/" + version}}}});
  ASSERT_TRUE(cluster.PutObject(object));
}

void Harness::RunJob(int count) {
  simulator::JobSpec job;
  job.id = "api";
  job.count = count;
  cluster.RunJob(job);
  clock.Advance(seconds(5));
}

void Harness::HangDrains(bool hang) {
  for (const std::string& vm : VmNames()) cluster.HangDrain(NodeOf(vm), hang);
}

std::string Harness::LeaveOneDraining() {
  EXPECT_TRUE(Scale(2).ok());
  RunJob(2);
  HangDrains();
  EXPECT_TRUE(Accept(1).ok());
  for (const json& vm : Vms()) {
    if (IsMarked(vm)) return NameOf(vm);
  }
  ADD_FAILURE() << "none is marked\n" << Transcript();
  return "";
}

json ObjectOf(const std::string& kind, const std::string& name, const std::string& pool) {
  json object = {{"apiVersion", kind == "Lease" ? "coordination.k8s.io/v1" : "v1"},
                 {"kind", kind},
                 {"metadata", {{"name", name}, {"namespace", std::string(kNamespace)}}}};
  if (!pool.empty()) {
    object["metadata"]["labels"] = {{"app.kubernetes.io/managed-by", "nomad-harvester-autoscaler"},
                                    {Key("pool"), pool}};
  }
  if (kind == "PersistentVolumeClaim") object["status"] = {{"phase", "Bound"}};
  return object;
}

json FormerClaim() { return ObjectOf("PersistentVolumeClaim", "web-f0rm3r-disk-0-a1b2c"); }

}  // namespace nomad_harvester::scenario
