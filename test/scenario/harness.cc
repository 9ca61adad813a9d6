#include "harness.h"

#include <utility>

#include <gtest/gtest.h>

#include "nomad_harvester/base/json.h"

#include "nlohmann/json.hpp"

namespace nomad_harvester::scenario {
namespace {

constexpr base::Duration kTick = std::chrono::seconds(10);
// An agent would have ticked for twenty minutes by then.
constexpr int kPatience = 120;

scaling::StringMap DefaultPolicy() {
  return {{"node_group_name", "web"},
          {"namespace", "nomad"},
          {"node_class", "web"},
          {"image", "default/ubuntu-24.04"},
          {"cpu_request", "2"},
          {"memory_request", "4Gi"},
          {"networks", "default/vlan100"},
          {"node_purge", "true"},
          {"user_data",
           "#cloud-config\nwrite_files:\n- path: /etc/nomad.d/client.hcl\n  content: |\n"
           "    name = \"{{vm_name}}\"\n    node_class = \"{{node_class}}\"\n"
           "    meta {\n      harvester_vm_uuid = \"{{vm_uuid}}\"\n    }\n"}};
}

}  // namespace

Process::Process(support::FakeClock& clock, simulator::Cluster& cluster, int number,
                 std::shared_ptr<log::RecordingSink> sink)
    : clock_(clock), root_(runtime::Context::Background(clock)) {
  scaling::ServiceOptions options;
  options.clock = &clock;
  options.random = runtime::MakeSeededRandom(static_cast<std::uint64_t>(number) * 7919 + 1);
  options.logger = log::Logger(std::move(sink), log::Level::kInfo);
  options.environment = [](const std::string&) { return std::nullopt; };
  options.transports = [&cluster](const config::PluginConfig&) {
    scaling::RawTransports transports;
    transports.harvester = cluster.HarvesterTransport();
    transports.nomad = cluster.NomadTransport();
    return transports;
  };
  options.foreground = &foreground_;
  options.background = &background_;
  options.holder = "test_" + std::to_string(number);
  service_ = scaling::MakeTargetService(std::move(options));
  const absl::Status configured =
      service_->SetConfig({{"harvester_url", "https://harvester.invalid"},
                           {"auth_token", "token"},
                           {"harvester_skip_verify", "true"}});
  EXPECT_TRUE(configured.ok()) << configured;
}

Process::~Process() = default;

absl::StatusOr<scaling::TargetStatus> Process::Status(const scaling::StringMap& policy) {
  return service_->Status(root_.context().WithTimeout(std::chrono::seconds(7)), policy);
}

absl::Status Process::Scale(std::int64_t count, const scaling::StringMap& policy,
                            const std::string& meta_json) {
  return service_->Scale(root_.context(),
                         {.count = count, .reason = "test", .meta_json = meta_json}, policy);
}

void Process::RunBackground() { background_.RunAll(); }

void Process::Stop() {
  service_->Stop(runtime::Context::Background(clock_).WithTimeout(std::chrono::seconds(1)));
}

Harness::Harness(simulator::Options options)
    : random(runtime::MakeSeededRandom(42)),
      cluster(clock, *random, std::move(options)),
      log(std::make_shared<log::RecordingSink>()),
      policy(DefaultPolicy()),
      invariants(cluster) {
  Restart();
}

Harness::~Harness() = default;

void Harness::Restart() {
  process_.reset();
  cluster.Resurrect();
  process_ = std::make_unique<Process>(clock, cluster, ++processes_, log);
}

absl::Status Harness::Scale(std::int64_t count, const std::string& meta_json) {
  invariants.Allow(count);
  return process_->Scale(count, policy, meta_json);
}

void Harness::Settle() {
  for (int tick = 0; tick < kPatience; ++tick) {
    const auto status = Status();
    ASSERT_TRUE(status.ok()) << status.status();
    process_->RunBackground();
    if (status->ready && tick > 0) return;
    clock.Advance(kTick);
  }
  ADD_FAILURE() << "it does not come to rest\n" << Story();
}

void Harness::Converge(std::int64_t count) {
  for (int tick = 0; tick < kPatience; ++tick) {
    const auto status = Status();
    ASSERT_TRUE(status.ok()) << status.status();
    process_->RunBackground();
    if (status->ready && status->count == count && tick > 0) {
      Settle();
      return;
    }
    if (status->ready && status->count != count) {
      // An error is tried again at the next tick, as the agent does.
      const absl::Status scaled = Scale(count);
      if (!scaled.ok()) log->Write({.time = clock.WallNow(), .message = scaled.ToString()});
    }
    clock.Advance(kTick);
  }
  ADD_FAILURE() << "it does not converge\n" << Story();
}

void Harness::CheckAtRest(std::int64_t count) {
  const std::vector<std::string> problems = invariants.AtRest(count);
  for (const std::string& problem : problems) ADD_FAILURE() << problem;
  if (!problems.empty()) ADD_FAILURE() << Story();
}

std::vector<std::string> Harness::VmNames() const {
  std::vector<std::string> names;
  for (const nlohmann::json& vm : cluster.Vms()) {
    names.push_back(base::GetString(vm["metadata"], "name"));
  }
  return names;
}

std::string Harness::NodeOf(const std::string& vm) const {
  return cluster.NodeIdOfVm(base::GetString(cluster.Vm(vm)["metadata"], "uid"));
}

std::string Harness::Story() const {
  std::string story = "--- the cluster\n";
  for (const std::string& line : cluster.Journal()) story += line + "\n";
  return story + "--- the plugin\n" + log->Text();
}

}  // namespace nomad_harvester::scenario
