// SPDX-License-Identifier: Apache-2.0
// All open RPCs, which a shutdown must end.
#ifndef NOMAD_HARVESTER_SRC_PLUGIN_CALL_REGISTRY_H_
#define NOMAD_HARVESTER_SRC_PLUGIN_CALL_REGISTRY_H_

#include <cstddef>
#include <memory>
#include <set>

#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/base/time.h"
#include "nomad_harvester/runtime/context.h"

#include "call.h"
#include "grpcpp/support/status.h"

namespace nomad_harvester::plugin {

// Thread-safe.
class CallRegistry {
 public:
  // False after Close: the RPC must then be ended immediately.
  bool Add(const std::shared_ptr<OpenRpc>& rpc);
  // To be called when gRPC is done with the RPC: its status was sent or the client has
  // disconnected.
  void Remove(const std::shared_ptr<OpenRpc>& rpc);

  void Close();
  // Ends all open RPCs.
  void EndAll(const grpc::Status& status);
  // Waits until no RPC is open, at most until the context ends; returns how many are left.
  std::size_t WaitUntilNone(const runtime::Context& context);

 private:
  base::Mutex mutex_;
  base::CondVar changed_;
  bool closed_ NH_GUARDED_BY(mutex_) = false;
  std::set<std::shared_ptr<OpenRpc>> open_ NH_GUARDED_BY(mutex_);
};

}  // namespace nomad_harvester::plugin

#endif  // NOMAD_HARVESTER_SRC_PLUGIN_CALL_REGISTRY_H_
