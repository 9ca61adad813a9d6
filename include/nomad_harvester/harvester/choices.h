// SPDX-License-Identifier: Apache-2.0
// Lists the Harvester objects that a policy can name.
#ifndef NOMAD_HARVESTER_HARVESTER_CHOICES_H_
#define NOMAD_HARVESTER_HARVESTER_CHOICES_H_

#include <string>
#include <vector>

#include "nomad_harvester/harvester/vm_spec.h"
#include "nomad_harvester/kube/client.h"
#include "nomad_harvester/runtime/context.h"

#include "absl/status/statusor.h"

namespace nomad_harvester::harvester {

// Names are "namespace/name", in alphabetical order.
struct Choices {
  std::vector<Image> images;  // including those that cannot be used yet
  std::vector<std::string> networks;
  std::vector<std::string> ssh_keys;
  std::vector<std::string> namespaces;  // empty: the token lacks the right to list them
};

// Lists all namespaces that the token may list; if it lacks the right to list all at once, only
// `namespaces`. Blocks for one list per kind, or per kind and namespace.
absl::StatusOr<Choices> ListChoices(const runtime::Context& context, const kube::KubeClient& client,
                                    const std::vector<std::string>& namespaces);

}  // namespace nomad_harvester::harvester

#endif  // NOMAD_HARVESTER_HARVESTER_CHOICES_H_
