// SPDX-License-Identifier: Apache-2.0
#include "process.h"

#include <chrono>
#include <stdexcept>
#include <utility>

#include "support/seeded_random.h"
#include "vm_facts.h"

namespace nomad_harvester::scenario {
namespace {

// Lets other acts run before a request is sent. Renewals of the Lease follow the clock and are no
// acts. Acts share Nomad's lists: in one thread, one that ran within a list would wait for it.
class Yielding final : public http::HttpTransport {
 public:
  Yielding(ActsExecutor& acts, std::shared_ptr<http::HttpTransport> inner)
      : acts_(acts), inner_(std::move(inner)) {}
  absl::StatusOr<http::HttpResponse> Send(const runtime::Context& context,
                                          const http::HttpRequest& request) override {
    const bool shared =
        request.target.starts_with("/v1/nodes") || request.target.starts_with("/v1/allocations");
    if (!shared && request.target.find("/leases") == std::string::npos) acts_.Yield();
    return inner_->Send(context, request);
  }

 private:
  ActsExecutor& acts_;
  const std::shared_ptr<http::HttpTransport> inner_;
};

}  // namespace

scaling::StringMap PolicyFor(const std::string& pool) {
  return {{"node_group_name", pool},
          {"namespace", kNamespace},
          {"node_class", pool},
          {"image", "default/ubuntu-24.04"},
          {"cpu_request", "2"},
          {"memory_request", "4Gi"},
          {"networks", "default/vlan100"},
          {"node_purge", "true"},
          {"user_data",
           "#cloud-config\nwrite_files:\n- path: /etc/nomad.d/nomad.hcl\n  content: |\n"
           "    name = \"{{vm_name}}\"\n    node_class = \"{{node_class}}\"\n"
           "    meta {\n      harvester_vm_uuid = \"{{vm_uuid}}\"\n    }\n"}};
}

Process::Process(support::FakeClock& clock, simulator::Cluster& cluster, int number,
                 std::shared_ptr<log::Sink> sink, ProcessOptions process_options)
    : clock_(clock),
      cluster_(cluster),
      name_("test_" + std::to_string(number)),
      options_(std::move(process_options)),
      root_(runtime::Context::Background(clock_)),
      scale_(root_.context()),
      foreground_(options_.interleaving) {
  scaling::ServiceOptions options;
  options.clock = &clock_;
  options.random = support::MakeSeededRandom(static_cast<std::uint64_t>(number) * 7919 + 1);
  options.logger = log::Logger(std::move(sink), log::Level::kInfo).With({{"process", name_}});
  options.environment = options_.environment;
  options.transports = [this](const config::PluginConfig&) {
    http::RawTransports transports = cluster_.Transports(name_, options_.nomad);
    transports.harvester = std::make_shared<Yielding>(foreground_, transports.harvester);
    transports.nomad = std::make_shared<Yielding>(foreground_, transports.nomad);
    return transports;
  };
  options.foreground = &foreground_;
  options.background = &background_;
  options.holder = name_;
  options.metrics_for = [this](const std::string&) { return options_.metrics_sink; };
  service_ = scaling::MakeTargetService(std::move(options));
  Configure();
}

void Process::Configure() {
  scaling::StringMap values = {{"harvester_url", "https://harvester.invalid"},
                               {"auth_token", "token"},
                               {"harvester_skip_verify", "true"}};
  values.insert(options_.config.begin(), options_.config.end());
  // They are requests beside the acts: only the tests of Events count with them.
  values.insert({"events", "false"});
  const absl::Status configured = service_->SetConfig(values);
  if (!configured.ok()) throw std::logic_error(configured.ToString());
}

Process::~Process() = default;

absl::StatusOr<scaling::TargetStatus> Process::Status(const scaling::StringMap& policy) {
  return service_->Status(root_.context().WithTimeout(std::chrono::seconds(7)), policy);
}

absl::Status Process::Scale(std::int64_t count, const scaling::StringMap& policy,
                            const std::string& meta_json,
                            std::optional<scaling::RemovalConsent> consent) {
  scale_ = runtime::CancelSource(root_.context());
  return service_->Scale(
      scale_.context(),
      {.count = count, .reason = "test", .meta_json = meta_json, .consent = std::move(consent)},
      policy);
}

void Process::RunBackground() { background_.RunAll(); }

void Process::Die() {
  cluster_.Kill(name_);
  root_.Cancel(runtime::CancelReason::kShutdown);
}

void Process::CancelScale() { scale_.Cancel(runtime::CancelReason::kClient); }

void Process::Stop() {
  service_->Stop(runtime::Context::Background(clock_).WithTimeout(std::chrono::seconds(1)));
}

}  // namespace nomad_harvester::scenario
