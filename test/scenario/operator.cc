// SPDX-License-Identifier: Apache-2.0
#include "operator.h"

#include <utility>

#include <gtest/gtest.h>

#include "nomad_harvester/scaling/step_spec.h"

#include "support/seeded_random.h"

namespace nomad_harvester::scenario {
namespace {

scaling::Clients ClientsOf(Harness& h, const std::string& client, const std::string& nomad) {
  auto config = config::ParsePluginConfig({{"harvester_url", "https://harvester.invalid"},
                                           {"auth_token", "token"},
                                           {"harvester_skip_verify", "true"}},
                                          {});
  EXPECT_TRUE(config.ok()) << config.status();
  return scaling::MakeClients(std::make_shared<const config::PluginConfig>(*std::move(config)),
                              h.cluster.Transports(client, nomad), support::MakeSeededRandom(17),
                              log::Logger(h.log, log::Level::kInfo));
}

scaling::MaintenanceOptions OptionsOf(Harness& h, runtime::Executor& executor) {
  scaling::MaintenanceOptions options;
  options.clock = &h.clock;
  options.random = support::MakeSeededRandom(18);
  options.logger = options.loop_logger = log::Logger(h.log, log::Level::kInfo);
  options.executor = &executor;
  options.holder = "operator";
  return options;
}

std::string_view KindOf(const scaling::ReconcileEvent& event) {
  switch (event.kind) {
    case scaling::ReconcileEvent::Kind::kPurge:
      return "purge";
    case scaling::ReconcileEvent::Kind::kDeleteClaim:
      return "delete-pvc";
    case scaling::ReconcileEvent::Kind::kDeleteSecret:
      return "delete-secret";
    case scaling::ReconcileEvent::Kind::kSetSecretOwner:
      return "own-secret";
    case scaling::ReconcileEvent::Kind::kStep:
      break;
  }
  return StepName(event.step.kind);
}

}  // namespace

Operator::Operator(Harness& h, const std::string& client, const std::string& nomad)
    : h_(h),
      maintenance_(OptionsOf(h, executor_), ClientsOf(h, client, nomad)),
      context_(runtime::Context::Background(h.clock)) {}

scaling::PoolKey Operator::key() const {
  return {.ns = h_.policy.at("namespace"), .pool = h_.policy.at("node_group_name")};
}

config::PoolPolicy Operator::Policy() const {
  auto policy = config::ParsePoolPolicy(h_.policy);
  EXPECT_TRUE(policy.ok()) << policy.status();
  return *std::move(policy);
}

scaling::ReconcileListener Operator::Listener() {
  events.clear();
  return [this](const scaling::ReconcileEvent& event) {
    events.push_back(std::string(KindOf(event)) + " " +
                     (event.object.empty() ? event.vm : event.object) +
                     (event.outcome.ok() ? "" : " FAILED"));
  };
}

scaling::Collection Operator::Collect() {
  return maintenance_.Collect(context_, key(), Policy(), Listener());
}
scaling::Collection Operator::Preview() {
  return maintenance_.Preview(context_, key(), Policy(), Listener());
}
scaling::Collection Operator::CollectWithoutPolicy() {
  return maintenance_.Collect(context_, key(), std::nullopt, Listener());
}
absl::StatusOr<scaling::Inspection> Operator::Inspect() {
  return maintenance_.Inspect(context_, Policy(), /*defines_vms=*/true);
}
absl::Status Operator::Adopt() {
  const auto adoption = maintenance_.FindAdoption(context_, key());
  return adoption.ok() ? maintenance_.Adopt(context_, *adoption) : adoption.status();
}
absl::Status Operator::Pause(const std::optional<base::Hold>& hold) {
  return hold.has_value() ? maintenance_.Pause(context_, key(), *hold).status()
                          : maintenance_.Resume(context_, key()).status();
}

absl::StatusOr<std::set<scaling::PoolKey>> Operator::FindPools(const std::string& ns) {
  return maintenance_.FindPools(context_, ns);
}

}  // namespace nomad_harvester::scenario
