// SPDX-License-Identifier: Apache-2.0
// A plugin server on its own socket, its scripted service, and a client.
#ifndef NOMAD_HARVESTER_TEST_PLUGIN_SERVER_FIXTURE_H_
#define NOMAD_HARVESTER_TEST_PLUGIN_SERVER_FIXTURE_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "nomad_harvester/runtime/clock.h"

#include "grpcpp/grpcpp.h"
#include "plugin/fake_service.h"
#include "plugin_server.h"
#include "proto/base.grpc.pb.h"
#include "proto/plugin.grpc.pb.h"
#include "proto/target.grpc.pb.h"
#include "support/recording_sink.h"
#include "support/scoped_temp_dir.h"

namespace nomad_harvester::plugin {

class ServerFixture : public ::testing::Test {
 protected:
  void SetUp() override;
  // Ends stubborn calls and stops the server.
  void TearDown() override;

  // With other options than those of SetUp.
  void Restart(const LaneSizes& lanes, const CallRules& rules = {});

  // One call; the reply's message is dropped.
  grpc::Status Scale(const scaling::StringMap& script, grpc::ClientContext& rpc);
  grpc::Status Scale(const scaling::StringMap& script);
  grpc::Status Status(const scaling::StringMap& script,
                      target_proto::StatusResponse* response = nullptr,
                      base::Duration deadline = std::chrono::minutes(1));
  grpc::Status SetConfig(const scaling::StringMap& config);

  // Starts a call in its own thread; TearDown joins it. The status is set when the call has ended.
  struct Background {
    grpc::ClientContext rpc;
    grpc::Status status;
    std::atomic<bool> done{false};
    std::thread thread;
  };
  Background& StartScale(const scaling::StringMap& script);
  Background& StartStatus(const scaling::StringMap& script, base::Duration deadline);

  // Fails the test if the condition never holds; the limit is far longer than needed.
  static void WaitUntil(const std::function<bool()>& condition);

  const support::ScopedTempDir directory_;
  std::unique_ptr<runtime::Clock> clock_ = runtime::MakeSystemClock();
  std::shared_ptr<support::RecordingSink> sink_ = std::make_shared<support::RecordingSink>();
  std::unique_ptr<FakeService> service_;
  std::unique_ptr<PluginServer> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<base_proto::BasePluginService::Stub> base_;
  std::unique_ptr<target_proto::TargetPluginService::Stub> target_;
  std::vector<std::unique_ptr<Background>> background_;
  std::function<void()> on_shutdown_ = [] {};
  std::atomic<int> shutdowns_{0};
};

}  // namespace nomad_harvester::plugin

#endif  // NOMAD_HARVESTER_TEST_PLUGIN_SERVER_FIXTURE_H_
