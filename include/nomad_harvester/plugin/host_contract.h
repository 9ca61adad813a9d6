// SPDX-License-Identifier: Apache-2.0
// What the hashicorp/go-plugin host expects of a plugin's process, in addition to gRPC.
#ifndef NOMAD_HARVESTER_PLUGIN_HOST_CONTRACT_H_
#define NOMAD_HARVESTER_PLUGIN_HOST_CONTRACT_H_

#include "nomad_harvester/config/plugin_config.h"

namespace nomad_harvester::plugin {

// The environment variable that shows that a Nomad Autoscaler started the process
// (hashicorp/nomad-autoscaler:plugins/plugin.go).
inline constexpr char kCookieKey[] = "NOMAD_AUTOSCALER_PLUGIN_MAGIC_COOKIE";
inline constexpr char kCookieValue[] =
    "e082fa04d587a6525d683666fa253d6afda00f20c122c54a80a3ed57fec99ff3";

// Whether the environment contains the right cookie.
bool StartedByHost(const config::Environment& environment);

}  // namespace nomad_harvester::plugin

#endif  // NOMAD_HARVESTER_PLUGIN_HOST_CONTRACT_H_
