// SPDX-License-Identifier: Apache-2.0
// The plugin's gRPC services, called as the Nomad Autoscaler's agent calls them.
#ifndef NOMAD_HARVESTER_SIMULATOR_DEMO_PLUGIN_CLIENT_H_
#define NOMAD_HARVESTER_SIMULATOR_DEMO_PLUGIN_CLIENT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "grpcpp/grpcpp.h"
#include "proto/target.grpc.pb.h"

namespace nomad_harvester::demo {

class PluginClient {
 public:
  using Policy = std::map<std::string, std::string>;
  struct Answer {
    bool ready = false;
    std::int64_t count = 0;
  };

  PluginClient(const std::string& address, Policy policy);

  // UNAVAILABLE if the plugin does not answer in time.
  absl::Status WaitUntilServing();
  absl::StatusOr<Answer> Status();
  // Blocks; `call` may be cancelled by another thread. A dry run is encoded as the agent does.
  absl::Status Scale(grpc::ClientContext& call, std::int64_t from, std::int64_t count,
                     bool dry_run);

 private:
  const Policy policy_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<
      hashicorp::nomad_autoscaler::plugins::target::proto::v1::TargetPluginService::Stub>
      target_;
};

}  // namespace nomad_harvester::demo

#endif  // NOMAD_HARVESTER_SIMULATOR_DEMO_PLUGIN_CLIENT_H_
