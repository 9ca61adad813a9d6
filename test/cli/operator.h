// SPDX-License-Identifier: Apache-2.0
// An operator of the simulated systems, for tests of the commands.
#ifndef NOMAD_HARVESTER_TEST_CLI_OPERATOR_H_
#define NOMAD_HARVESTER_TEST_CLI_OPERATOR_H_

#include <memory>
#include <sstream>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "nomad_harvester/base/time.h"
#include "nomad_harvester/runtime/random.h"
#include "nomad_harvester/runtime/workers.h"
#include "nomad_harvester/scaling/maintenance.h"
#include "nomad_harvester/simulator/cluster.h"

#include "command.h"
#include "nlohmann/json.hpp"
#include "settings.h"
#include "support/fake_clock.h"
#include "support/inline_executor.h"
#include "support/seeded_random.h"

namespace nomad_harvester::cli {

inline http::RawTransports TransportsOf(simulator::Cluster& cluster, const std::string& client) {
  http::RawTransports transports;
  transports.harvester = cluster.HarvesterTransport(client);
  transports.nomad = cluster.NomadTransport(client);
  return transports;
}

// As the client "operator". All arguments but the settings must outlive it.
inline std::unique_ptr<scaling::Maintenance> MakeMaintenance(simulator::Cluster& cluster,
                                                             runtime::Clock& clock,
                                                             runtime::Executor& executor,
                                                             const Settings& settings) {
  scaling::MaintenanceOptions options;
  options.clock = &clock;
  options.random = support::MakeSeededRandom(2);
  options.executor = &executor;
  options.holder = "operator";
  return std::make_unique<scaling::Maintenance>(
      options,
      scaling::MakeClients(std::make_shared<config::PluginConfig>(settings.plugin),
                           TransportsOf(cluster, "operator"), options.random, options.logger));
}

// Commands against simulated systems. A test's settings and maintenance are its own.
class OperatorTest : public testing::Test {
 protected:
  // A command that prints into out_ and err_.
  int Call(const std::string& command, const Task& task, const Prompter& prompter = {}) {
    out_ = std::ostringstream();
    err_ = std::ostringstream();
    const ErrorWriter errors(command, {}, err_);
    const runtime::Context context = work_.context();
    return task({.maintenance = *maintenance_,
                 .context = context,
                 .settings = settings_,
                 .out = out_,
                 .err = err_,
                 .errors = errors,
                 .terminal = terminal_,
                 .prompter = prompter,
                 .has_reader = has_reader_});
  }
  // One of the two systems accepts requests and never replies.
  void Hang(simulator::System system, const std::string& resource = "") {
    cluster_.SetFaultHook([system, resource](const simulator::RequestInfo& request) {
      const bool hangs =
          request.system == system && (resource.empty() || request.resource == resource);
      return hangs ? simulator::Fault::Delay(std::chrono::hours(1)) : simulator::Fault::None();
    });
  }
  // The process that sends such a request is killed, before or right after it takes effect.
  void KillAt(const std::string& verb, const std::string& resource, bool applied = true) {
    cluster_.SetFaultHook([verb, resource, applied](const simulator::RequestInfo& request) {
      if (request.verb != verb || request.resource != resource) return simulator::Fault::None();
      return applied ? simulator::Fault::ApplyThenDie() : simulator::Fault::Die();
    });
  }
  void StopAfter(base::Duration duration) {
    clock_.After(duration, [this] { work_.Cancel(runtime::CancelReason::kShutdown); });
  }
  // Another process holds the Lease and has renewed it just now.
  void HoldLease(const std::string& holder = "agents-plugin") {
    nlohmann::json lease = cluster_.Leases().at(0);
    lease["spec"]["holderIdentity"] = holder;
    lease["spec"]["renewTime"] = base::FormatRfc3339Micros(clock_.WallNow());
    ASSERT_TRUE(cluster_.PutObject(lease));
  }

  support::FakeClock clock_;
  std::unique_ptr<runtime::Random> random_ = support::MakeSeededRandom(1);
  simulator::Cluster cluster_{clock_, *random_};
  support::InlineExecutor executor_;
  runtime::CancelSource work_{runtime::Context::Background(clock_)};
  Settings settings_;
  std::unique_ptr<scaling::Maintenance> maintenance_;
  std::ostringstream out_;
  std::ostringstream err_;
  Terminal terminal_;
  bool (*has_reader_)() = [] { return true; };
};

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_TEST_CLI_OPERATOR_H_
