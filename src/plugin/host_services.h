// SPDX-License-Identifier: Apache-2.0
// The services beside the plugin's own that a go-plugin host expects
// (hashicorp/go-plugin:grpc_server.go): its own three, and health.
#ifndef NOMAD_HARVESTER_SRC_PLUGIN_HOST_SERVICES_H_
#define NOMAD_HARVESTER_SRC_PLUGIN_HOST_SERVICES_H_

#include <functional>
#include <memory>

#include "call.h"
#include "rpc.h"

namespace nomad_harvester::plugin {

// Keeps a stream open until the client ends or cancels it, or a shutdown ends the registry's RPCs.
// False after the registry was closed: the stream has ended.
bool HoldOpen(const std::shared_ptr<Rpc>& rpc, CallRegistry& streams);

// GRPCController: `on_shutdown` is called after the reply has been sent, and must not block.
// GRPCStdio: a stream without messages, because the plugin prints only the handshake line to
// stdout, and the host reads stderr, with the log, itself. GRPCBroker: its messages are read and
// ignored, because the autoscaler opens the stream and never uses it. Health: SERVING for the
// server, "", and for "plugin" (hashicorp/go-plugin:grpc_server.go, GRPCServiceName).
void AddHostServices(std::function<void()> on_shutdown, CallRegistry& streams, Methods* methods);

}  // namespace nomad_harvester::plugin

#endif  // NOMAD_HARVESTER_SRC_PLUGIN_HOST_SERVICES_H_
