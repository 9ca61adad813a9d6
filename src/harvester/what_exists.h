// SPDX-License-Identifier: Apache-2.0
// Builds errors about missing objects that name the existing ones. Private to module harvester.
#ifndef NOMAD_HARVESTER_SRC_HARVESTER_WHAT_EXISTS_H_
#define NOMAD_HARVESTER_SRC_HARVESTER_WHAT_EXISTS_H_

#include <string>
#include <string_view>
#include <vector>

#include "nomad_harvester/kube/client.h"
#include "nomad_harvester/runtime/context.h"

#include "absl/status/status.h"

namespace nomad_harvester::harvester {

// "a, b, c", or only the first names of a long list.
std::string Listed(const std::vector<std::string>& names);

// Turns `read`, the result of reading a required object, into OK or an error that begins with
// `what` and its name. If the object is missing, NOT_FOUND names the existing ones: "network
// default/web does not exist; the namespace has: a, b". It then blocks for a list; if the list
// fails or is not permitted, the names are omitted.
absl::Status Existing(const absl::Status& read, const kube::KubeClient& client,
                      const runtime::Context& context, const kube::ResourceType& type,
                      std::string_view what, const std::string& ns, const std::string& name);

}  // namespace nomad_harvester::harvester

#endif  // NOMAD_HARVESTER_SRC_HARVESTER_WHAT_EXISTS_H_
