// SPDX-License-Identifier: Apache-2.0
// URL paths and descriptions of resources.
#ifndef NOMAD_HARVESTER_SRC_KUBE_PATHS_H_
#define NOMAD_HARVESTER_SRC_KUBE_PATHS_H_

#include <string>

#include "nomad_harvester/kube/resource_type.h"

#include "absl/status/statusor.h"

namespace nomad_harvester::kube {

// "/apis/<group>/<version>[/namespaces/<ns>]/<plural>". INVALID_ARGUMENT: the namespace is not a
// valid path segment.
absl::StatusOr<std::string> CollectionPath(const ResourceType& type, const std::string& ns);
// Likewise with "/<name>". An empty name is INVALID_ARGUMENT: the path would be the collection's,
// and a DELETE would remove all its objects.
absl::StatusOr<std::string> ObjectPath(const ResourceType& type, const std::string& ns,
                                       const std::string& name);

// "VirtualMachine default/web-1", "Setting server-version".
std::string Describe(const ResourceType& type, const std::string& ns, const std::string& name);
// "VirtualMachines in default", "StorageClasses".
std::string DescribeCollection(const ResourceType& type, const std::string& ns);

}  // namespace nomad_harvester::kube

#endif  // NOMAD_HARVESTER_SRC_KUBE_PATHS_H_
