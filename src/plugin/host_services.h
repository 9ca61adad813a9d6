// SPDX-License-Identifier: Apache-2.0
// go-plugin's own services, which its host expects in addition to the plugin's
// (hashicorp/go-plugin:grpc_server.go).
#ifndef NOMAD_HARVESTER_SRC_PLUGIN_HOST_SERVICES_H_
#define NOMAD_HARVESTER_SRC_PLUGIN_HOST_SERVICES_H_

#include <functional>
#include <memory>
#include <vector>

#include "call.h"
#include "grpcpp/server_builder.h"

namespace nomad_harvester::plugin {

// GRPCController calls `on_shutdown`, which must not block, after the reply has been sent.
// GRPCStdio is a stream without messages: the plugin prints only the handshake line to stdout, and
// the host itself reads stderr, which has the log. GRPCBroker reads messages and ignores them,
// because the autoscaler opens the stream and never uses it. Open streams are registered in
// `streams`, which must outlive the services.
std::vector<std::unique_ptr<grpc::Service>> MakeHostServices(std::function<void()> on_shutdown,
                                                             CallRegistry& streams);

}  // namespace nomad_harvester::plugin

#endif  // NOMAD_HARVESTER_SRC_PLUGIN_HOST_SERVICES_H_
