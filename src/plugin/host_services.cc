// SPDX-License-Identifier: Apache-2.0
#include "host_services.h"

#include <optional>
#include <string>
#include <utility>

#include "proto/health.pb.h"
#include "proto/plugin.pb.h"

namespace nomad_harvester::plugin {
namespace {

using ::grpc::health::v1::HealthCheckRequest;
using ::grpc::health::v1::HealthCheckResponse;

void ReadAndIgnore(const std::shared_ptr<Rpc>& rpc) {
  rpc->Read([rpc](const std::optional<std::string>& message) {
    if (message.has_value()) {
      ReadAndIgnore(rpc);
    } else {
      rpc->Finish(grpc::Status::OK);
    }
  });
}

bool IsServed(const HealthCheckRequest& request) {
  return request.service().empty() || request.service() == "plugin";
}

std::string Serialized(HealthCheckResponse::ServingStatus status) {
  HealthCheckResponse response;
  response.set_status(status);
  return response.SerializeAsString();
}

void Check(const std::shared_ptr<Rpc>& rpc) {
  ReadRequest<HealthCheckRequest>(rpc, [rpc](const HealthCheckRequest& request) {
    if (IsServed(request)) {
      rpc->Finish(grpc::Status::OK, Serialized(HealthCheckResponse::SERVING));
    } else {
      rpc->Finish({grpc::StatusCode::NOT_FOUND, "there is no such service"});
    }
  });
}

}  // namespace

bool HoldOpen(const std::shared_ptr<Rpc>& rpc, CallRegistry& streams) {
  rpc->OnEnd([rpc, &streams] { streams.Remove(rpc); });
  rpc->OnCancel([rpc] { rpc->Finish(grpc::Status::OK); });
  rpc->SendHeaders();
  if (streams.Add(rpc)) return true;
  rpc->Finish(grpc::Status::OK);
  return false;
}

void AddHostServices(std::function<void()> on_shutdown, CallRegistry& streams, Methods* methods) {
  (*methods)["/plugin.GRPCController/Shutdown"] =
      [on_shutdown = std::move(on_shutdown)](const std::shared_ptr<Rpc>& rpc) {
        ReadRequest<::plugin::Empty>(rpc, [rpc, on_shutdown](const ::plugin::Empty&) {
          rpc->OnEnd(on_shutdown);
          rpc->Finish(grpc::Status::OK, std::string());
        });
      };
  (*methods)["/plugin.GRPCStdio/StreamStdio"] = [&streams](const std::shared_ptr<Rpc>& rpc) {
    HoldOpen(rpc, streams);
  };
  (*methods)["/plugin.GRPCBroker/StartStream"] = [&streams](const std::shared_ptr<Rpc>& rpc) {
    if (HoldOpen(rpc, streams)) ReadAndIgnore(rpc);
  };
  (*methods)["/grpc.health.v1.Health/Check"] = Check;
  (*methods)["/grpc.health.v1.Health/Watch"] = [&streams](const std::shared_ptr<Rpc>& rpc) {
    ReadRequest<HealthCheckRequest>(rpc, [rpc, &streams](const HealthCheckRequest& request) {
      // It never changes: what is served is served until the connection ends.
      const std::string status = Serialized(
          IsServed(request) ? HealthCheckResponse::SERVING : HealthCheckResponse::SERVICE_UNKNOWN);
      if (HoldOpen(rpc, streams)) rpc->Write(status, [] {});
    });
  };
}

}  // namespace nomad_harvester::plugin
