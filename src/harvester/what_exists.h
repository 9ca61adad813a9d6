// SPDX-License-Identifier: Apache-2.0
// What an error about a missing object says of those that exist. Private to module harvester.
#ifndef NOMAD_HARVESTER_SRC_HARVESTER_WHAT_EXISTS_H_
#define NOMAD_HARVESTER_SRC_HARVESTER_WHAT_EXISTS_H_

#include <string>
#include <string_view>
#include <vector>

#include "nomad_harvester/kube/client.h"
#include "nomad_harvester/runtime/context.h"

#include "absl/status/status.h"

namespace nomad_harvester::harvester {

// "a, b, c", of a long list the first ones.
std::string Listed(const std::vector<std::string>& names);

// An object that must exist was read: OK, or an error that begins with `what` and its name. If it
// is missing, NOT_FOUND with the names of those that are there: "network default/web does not
// exist; the namespace has: a, b". Blocks for the list then, which is left out if it fails or is
// not permitted.
absl::Status Existing(const absl::Status& read, const kube::KubeClient& client,
                      const runtime::Context& context, const kube::ResourceType& type,
                      std::string_view what, const std::string& ns, const std::string& name);

}  // namespace nomad_harvester::harvester

#endif  // NOMAD_HARVESTER_SRC_HARVESTER_WHAT_EXISTS_H_
