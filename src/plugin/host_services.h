// SPDX-License-Identifier: Apache-2.0
// go-plugin's own services, which the host calls on every plugin.
#ifndef NOMAD_HARVESTER_SRC_PLUGIN_HOST_SERVICES_H_
#define NOMAD_HARVESTER_SRC_PLUGIN_HOST_SERVICES_H_

#include <functional>
#include <utility>

#include "call.h"
#include "proto/plugin.grpc.pb.h"

namespace nomad_harvester::plugin {

namespace host_proto = ::plugin;

class ControllerService final : public host_proto::GRPCController::CallbackService {
 public:
  // `on_shutdown` is called after the reply has been sent, on a gRPC thread: it must not block.
  explicit ControllerService(std::function<void()> on_shutdown)
      : on_shutdown_(std::move(on_shutdown)) {}

  grpc::ServerUnaryReactor* Shutdown(grpc::CallbackServerContext* rpc,
                                     const host_proto::Empty* request,
                                     host_proto::Empty* response) override;

 private:
  const std::function<void()> on_shutdown_;
};

// A stream without messages: the plugin prints only the handshake line to stdout, and the host
// reads stderr, with the log, itself. Open until the host or a shutdown ends it.
class StdioService final : public host_proto::GRPCStdio::CallbackService {
 public:
  explicit StdioService(CallRegistry& registry) : registry_(registry) {}

  grpc::ServerWriteReactor<host_proto::StdioData>* StreamStdio(
      grpc::CallbackServerContext* rpc, const google::protobuf::Empty* request) override;

 private:
  CallRegistry& registry_;
};

// Reads and ignores the host's messages: the autoscaler opens the stream and never uses it.
class BrokerService final : public host_proto::GRPCBroker::CallbackService {
 public:
  explicit BrokerService(CallRegistry& registry) : registry_(registry) {}

  grpc::ServerBidiReactor<host_proto::ConnInfo, host_proto::ConnInfo>* StartStream(
      grpc::CallbackServerContext* rpc) override;

 private:
  CallRegistry& registry_;
};

}  // namespace nomad_harvester::plugin

#endif  // NOMAD_HARVESTER_SRC_PLUGIN_HOST_SERVICES_H_
