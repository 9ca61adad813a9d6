// SPDX-License-Identifier: Apache-2.0
// The servers on sockets, called with libcurl.
#include "nomad_harvester/simulator/server.h"

#include <atomic>
#include <thread>

#include "nomad_harvester/http/curl_transport.h"
#include "nomad_harvester/kube/observed.h"

#include "simulator_fixture.h"
#include "support/seeded_random.h"

namespace nomad_harvester::simulator {
namespace {

using absl::StatusCode;

class ServerTest : public testing::Test {
 protected:
  static std::shared_ptr<http::HttpTransport> Transport(const std::string& url) {
    http::CurlOptions options;
    options.base_url = url;
    auto transport = http::MakeCurlTransport(options);
    EXPECT_THAT(transport, IsOk());
    return *transport;
  }
  static Options Fast() {
    Options options;
    options.boot_time = options.join_time = options.shutdown_time = milliseconds(5);
    options.reaction_time = milliseconds(1);
    return options;
  }

  std::unique_ptr<runtime::Clock> clock_ = runtime::MakeSystemClock();
  std::unique_ptr<runtime::Random> random_ = support::MakeSeededRandom(1);
  runtime::Context context_ = runtime::Context::Background(*clock_);
  Cluster cluster_{*clock_, *random_, Fast()};
  SimulatorServer server_{cluster_, *clock_};
  const absl::Status started_ = server_.Start();  // before the clients, which need the ports
  kube::KubeClient kube_{Transport(server_.harvester_url())};
  nomad::NomadClient nomad_{Transport(server_.nomad_url()), {}};
};

TEST_F(ServerTest, Every_verb_comes_through_with_its_body) {
  ASSERT_THAT(kube_.Create(context_, kube::kSecrets, "nomad", SecretFor("vm-1")), IsOk());
  ASSERT_THAT(kube_.Create(context_, kube::kVirtualMachines, "nomad", VmNamed("vm-1")), IsOk());
  const auto patched = kube_.MergePatch(context_, kube::kVirtualMachines, "nomad", "vm-1",
                                        {{"metadata", {{"annotations", {{"a", "ü"}}}}}});
  ASSERT_THAT(patched, IsOk());
  EXPECT_EQ(patched->object["metadata"]["annotations"]["a"], "ü");
  EXPECT_TRUE(patched->server_time.has_value());
  EXPECT_THAT(kube::ListNames(kube_, context_, kube::kVirtualMachines, "nomad",
                              {.labels = "pool==p,a/b!=c+d"})
                  ->value,
              SizeIs(1));
  kube::DeleteOptions options;
  options.uid = "wrong";
  EXPECT_TRUE(
      kube::IsConflict(kube_.Delete(context_, kube::kVirtualMachines, "nomad", "vm-1", options)));
  options.uid = patched->object["metadata"]["uid"];
  EXPECT_THAT(kube_.Delete(context_, kube::kVirtualMachines, "nomad", "vm-1", options), IsOk());
  EXPECT_THAT(kube_.Get(context_, kube::kSecrets, "nomad", "other"),
              StatusIs(StatusCode::kNotFound));
}

TEST_F(ServerTest, A_blocking_query_is_woken_by_a_change) {
  NodeSpec spec;
  spec.name = "n";
  const std::string id = cluster_.AddForeignNode(spec);
  nomad::ReadOptions options;
  options.index = nomad_.ListNodes(context_)->index;
  options.wait = minutes(5);
  std::thread changer([&] { EXPECT_THAT(nomad_.SetEligible(context_, id, false), IsOk()); });
  const auto changed = nomad_.ListNodes(context_, options);
  changer.join();
  ASSERT_THAT(changed, IsOk());
  ASSERT_THAT(changed->value, SizeIs(1));
  EXPECT_FALSE(changed->value.front().eligible);
}

TEST_F(ServerTest, Stopping_ends_a_blocking_query) {
  NodeSpec spec;
  spec.name = "n";
  cluster_.AddForeignNode(spec);
  nomad::ReadOptions options;
  options.index = nomad_.ListNodes(context_)->index;
  options.wait = minutes(5);
  std::atomic<bool> asked{false};
  cluster_.SetFaultHook([&](const RequestInfo&) {
    asked = true;
    return Fault::None();
  });
  std::thread asker([&] {
    EXPECT_THAT(nomad_.ListNodes(context_, options), StatusIs(StatusCode::kUnavailable));
  });
  while (!asked) std::this_thread::yield();
  server_.Stop();
  asker.join();
}

TEST_F(ServerTest, A_lost_reply_is_a_broken_connection) {
  cluster_.SetFaultHook([](const RequestInfo&) { return Fault::DropReply(); });
  EXPECT_THAT(kube_.Create(context_, kube::kSecrets, "nomad", SecretFor("vm-1")),
              StatusIs(StatusCode::kUnavailable));
  EXPECT_THAT(cluster_.Secrets(), SizeIs(1));
}

TEST_F(ServerTest, A_port_that_is_taken_is_refused) {
  const int taken = std::stoi(server_.nomad_url().substr(server_.nomad_url().rfind(':') + 1));
  SimulatorServer second(cluster_, *clock_, taken);
  EXPECT_THAT(second.Start(), StatusIs(StatusCode::kUnavailable, HasSubstr("cannot listen")));
}

}  // namespace
}  // namespace nomad_harvester::simulator
