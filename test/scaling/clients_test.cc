// SPDX-License-Identifier: Apache-2.0
//
// What requests of several pools, and urgent ones, wait for.

#include "nomad_harvester/scaling/clients.h"

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/kube/observed.h"
#include "nomad_harvester/nomad/connection.h"
#include "nomad_harvester/runtime/clock.h"

#include "kube/list_names.h"
#include "nlohmann/json.hpp"
#include "support/scripted_transport.h"
#include "support/seeded_random.h"
#include "support/status_matchers.h"

namespace nomad_harvester::scaling {
namespace {

using runtime::Context;
using std::chrono::minutes;
using support::IsOk;
using support::ScriptedTransport;

// Answers nothing until it is opened, and counts what is in flight.
class Gate {
 public:
  explicit Gate(std::string body) : body_(std::move(body)) {}

  std::shared_ptr<http::HttpTransport> Transport() {
    return std::make_shared<ScriptedTransport>(
        [this](const Context&, const http::HttpRequest&) { return Pass(); });
  }
  ScriptedTransport::Outcome Pass() {
    base::MutexLock lock(mutex_);
    most_ = std::max(most_, ++inside_);
    changed_.NotifyAll();
    changed_.Wait(mutex_, [this]() NH_REQUIRES(mutex_) { return open_; });
    --inside_;
    return support::Reply(200, {{"X-Nomad-Index", "1"}}, body_);
  }
  void Open() {
    base::MutexLock lock(mutex_);
    open_ = true;
    changed_.NotifyAll();
  }
  // The test's time limit is the protection against hangs.
  void AwaitInside(std::size_t count) {
    base::MutexLock lock(mutex_);
    changed_.Wait(mutex_, [&]() NH_REQUIRES(mutex_) { return inside_ >= count; });
  }
  std::size_t most() {
    base::MutexLock lock(mutex_);
    return most_;
  }

 private:
  const std::string body_;
  base::Mutex mutex_;
  base::CondVar changed_;
  bool open_ NH_GUARDED_BY(mutex_) = false;
  std::size_t inside_ NH_GUARDED_BY(mutex_) = 0;
  std::size_t most_ NH_GUARDED_BY(mutex_) = 0;
};

class ClientsTest : public testing::Test {
 protected:
  ~ClientsTest() override { Finish(); }

  Clients Make(int max_concurrency) {
    config::PluginConfig config;
    config.max_concurrency = max_concurrency;
    config.request_timeout = minutes(10);
    http::RawTransports transports;
    transports.harvester = harvester_.Transport();
    transports.nomad = nomad_.Transport();
    return MakeClients(std::make_shared<const config::PluginConfig>(config), transports,
                       std::shared_ptr(support::MakeSeededRandom(1)), log::Logger());
  }
  void ListNodes(std::shared_ptr<const nomad::NomadClient> client,
                 const nomad::ReadOptions& options = {}) {
    threads_.emplace_back([this, client = std::move(client), options] {
      EXPECT_THAT(client->ListNodes(context_, options), IsOk());
    });
  }
  void ListVms(std::shared_ptr<const kube::KubeClient> client) {
    threads_.emplace_back([this, client = std::move(client)] {
      EXPECT_THAT(kube::ListNames(*client, context_, kube::kVirtualMachines, "default"), IsOk());
    });
  }
  void Finish() {
    harvester_.Open();
    nomad_.Open();
    threads_.clear();
  }

  const std::unique_ptr<runtime::Clock> clock_ = runtime::MakeSystemClock();
  const Context context_ = Context::Background(*clock_);
  Gate harvester_{
      R"({"kind": "VirtualMachineList", "metadata": {"resourceVersion": "1"}, "items": []})"};
  Gate nomad_{"[]"};
  std::vector<std::jthread> threads_;
};

TEST_F(ClientsTest, L8_max_concurrency_is_per_pool) {
  const Clients first = Make(1);
  const Clients second = ClientsForPool(first);
  for (int i = 0; i < 3; ++i) {
    ListNodes(first.nomad);
    ListVms(first.kube);
  }
  nomad_.AwaitInside(1);
  harvester_.AwaitInside(1);
  ListNodes(second.nomad);
  ListVms(second.kube);
  nomad_.AwaitInside(2);
  harvester_.AwaitInside(2);
  Finish();
  EXPECT_EQ(nomad_.most(), 2U);
  EXPECT_EQ(harvester_.most(), 2U);
}

TEST_F(ClientsTest, L8_all_pools_together_leave_connections_to_others) {
  const Clients first = Make(1000);
  const Clients second = ClientsForPool(first);
  for (std::size_t i = 0; i < nomad::kMaxRequests; ++i) {
    ListNodes(first.nomad);
    ListNodes(second.nomad);
  }
  for (std::size_t i = 0; i < kHarvesterRequests; ++i) {
    ListVms(first.kube);
    ListVms(second.kube);
  }
  nomad_.AwaitInside(nomad::kMaxRequests);
  harvester_.AwaitInside(kHarvesterRequests);
  Finish();
  EXPECT_EQ(nomad_.most(), nomad::kMaxRequests);
  EXPECT_EQ(harvester_.most(), kHarvesterRequests);
}

TEST_F(ClientsTest, L8_urgent_requests_and_blocking_queries_wait_for_no_other_request) {
  const Clients clients = Make(1);
  ListNodes(clients.nomad);
  ListVms(clients.kube);
  nomad_.AwaitInside(1);
  harvester_.AwaitInside(1);
  constexpr std::size_t kUrgent = 70;
  for (std::size_t i = 0; i < kUrgent; ++i) {
    ListNodes(clients.nomad_urgent);
    ListVms(clients.kube_urgent);
  }
  nomad_.AwaitInside(1 + kUrgent);
  harvester_.AwaitInside(1 + kUrgent);
  ListNodes(clients.nomad, {.index = 7, .wait = minutes(1)});
  nomad_.AwaitInside(2 + kUrgent);
}

TEST(Clients, C15_every_request_to_nomad_names_the_configured_region) {
  const auto nomad = std::make_shared<ScriptedTransport>();
  nomad->Otherwise([](const Context&, const http::HttpRequest&) {
    return support::Reply(200, {{"X-Nomad-Index", "1"}}, "[]");
  });
  config::PluginConfig config;
  config.nomad.region = "eu";
  const Clients clients =
      MakeClients(std::make_shared<const config::PluginConfig>(config),
                  {.harvester = std::make_shared<ScriptedTransport>(), .nomad = nomad},
                  std::shared_ptr(support::MakeSeededRandom(1)), log::Logger());
  const std::unique_ptr<runtime::Clock> clock = runtime::MakeSystemClock();
  const Context context = Context::Background(*clock);
  for (const auto& client : {clients.nomad, clients.nomad_urgent, ClientsForPool(clients).nomad}) {
    EXPECT_THAT(client->ListNodes(context), IsOk());
    EXPECT_THAT(nomad->requests().back().target, testing::HasSubstr("region=eu"));
  }
}

TEST(Clients, an_event_that_fails_is_not_sent_again) {
  const auto harvester = std::make_shared<ScriptedTransport>();
  harvester->Otherwise(
      [](const Context&, const http::HttpRequest&) { return support::Reply(503); });
  const Clients clients =
      MakeClients(std::make_shared<const config::PluginConfig>(),
                  {.harvester = harvester, .nomad = std::make_shared<ScriptedTransport>()},
                  std::shared_ptr(support::MakeSeededRandom(1)), log::Logger());
  const std::unique_ptr<runtime::Clock> clock = runtime::MakeSystemClock();
  const nlohmann::json event = {{"metadata", {{"name", "e"}}}};
  EXPECT_FALSE(
      clients.kube_events->Create(Context::Background(*clock), kube::kEvents, "default", event, {})
          .ok());
  EXPECT_EQ(harvester->requests().size(), 1U);
}

}  // namespace
}  // namespace nomad_harvester::scaling
