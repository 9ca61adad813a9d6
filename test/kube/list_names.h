// SPDX-License-Identifier: Apache-2.0
// The names of the objects of a list, where a test needs no more of them.
#ifndef NOMAD_HARVESTER_TEST_KUBE_LIST_NAMES_H_
#define NOMAD_HARVESTER_TEST_KUBE_LIST_NAMES_H_

#include <string>

#include "nomad_harvester/kube/client.h"

namespace nomad_harvester::kube {

struct Named {
  std::string name;
};

inline absl::StatusOr<Timestamped<std::vector<Named>>> ListNames(
    const KubeClient& client, const runtime::Context& context, const ResourceType& type,
    const std::string& ns, const Selector& selector = {}, Part part = Part::kWhole) {
  static const auto* const kFields =
      new base::JsonFields<Named>({{"metadata.name", &base::SetText<&Named::name>}});
  return client.List<Named>(context, type, ns, selector, *kFields, part);
}

}  // namespace nomad_harvester::kube

#endif  // NOMAD_HARVESTER_TEST_KUBE_LIST_NAMES_H_
