// SPDX-License-Identifier: Apache-2.0
// Tells clients such as grpcurl what is served. gRPC's own reflection needs a synchronous server
// with threads of its own; and nothing of this runs before somebody asks.
#ifndef NOMAD_HARVESTER_SRC_PLUGIN_REFLECTION_H_
#define NOMAD_HARVESTER_SRC_PLUGIN_REFLECTION_H_

#include "call.h"
#include "rpc.h"

namespace nomad_harvester::plugin {

// Lists the services of all methods that are in `methods` when it is asked, and the descriptors of
// the files in proto/ and their imports. The symbols that it finds are services, methods and types,
// not fields and values, which nobody asks for by name. `methods` must outlive the RPCs.
void AddReflection(CallRegistry& streams, Methods* methods);

}  // namespace nomad_harvester::plugin

#endif  // NOMAD_HARVESTER_SRC_PLUGIN_REFLECTION_H_
