// SPDX-License-Identifier: Apache-2.0
// Where a resource lives.
#ifndef NOMAD_HARVESTER_SRC_KUBE_PATHS_H_
#define NOMAD_HARVESTER_SRC_KUBE_PATHS_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nomad_harvester/kube/resource_type.h"

#include "absl/status/statusor.h"

namespace nomad_harvester::kube {

// "/apis/<group>/<version>[/namespaces/<ns>]/<plural>". INVALID_ARGUMENT: a namespace that cannot
// be a path segment.
absl::StatusOr<std::string> CollectionPath(const ResourceType& type, const std::string& ns);
// The same and "/<name>". An empty name is INVALID_ARGUMENT: it would address the whole collection,
// and a DELETE would empty it.
absl::StatusOr<std::string> ObjectPath(const ResourceType& type, const std::string& ns,
                                       const std::string& name);

// "?key=value&…", values escaped, empty ones left out; empty if nothing is left.
std::string QueryString(const std::vector<std::pair<std::string_view, std::string>>& parameters);

// "VirtualMachine default/web-1", "Setting server-version".
std::string Describe(const ResourceType& type, const std::string& ns, const std::string& name);
// "VirtualMachines in default", "StorageClasses".
std::string DescribeCollection(const ResourceType& type, const std::string& ns);

}  // namespace nomad_harvester::kube

#endif  // NOMAD_HARVESTER_SRC_KUBE_PATHS_H_
