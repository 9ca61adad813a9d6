// SPDX-License-Identifier: Apache-2.0
// What there is in Harvester that a policy can name.
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
  std::vector<Image> images;  // also those that cannot be used yet
  std::vector<std::string> networks;
  std::vector<std::string> ssh_keys;
  std::vector<std::string> namespaces;  // empty: the token may not list them
};

// Of all namespaces that the token may list: if it may not list them all at once, of `namespaces`.
// Blocks for a list of each kind, or for one of each kind and namespace.
absl::StatusOr<Choices> ListChoices(const runtime::Context& context, const kube::KubeClient& client,
                                    const std::vector<std::string>& namespaces);

}  // namespace nomad_harvester::harvester

#endif  // NOMAD_HARVESTER_HARVESTER_CHOICES_H_
