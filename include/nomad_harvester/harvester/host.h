// SPDX-License-Identifier: Apache-2.0
// The physical hosts of Harvester: Kubernetes nodes. The right to read them is optional, because
// they are cluster-wide and a namespace's Role cannot grant it.
#ifndef NOMAD_HARVESTER_HARVESTER_HOST_H_
#define NOMAD_HARVESTER_HARVESTER_HOST_H_

#include <map>
#include <string>
#include <vector>

#include "nomad_harvester/kube/client.h"
#include "nomad_harvester/runtime/context.h"

#include "absl/status/statusor.h"

namespace nomad_harvester::harvester {

struct Taint {
  std::string key{};
  std::string value{};
  std::string effect{};
};
struct Host {
  std::string name;
  std::string zone;       // label topology.kubernetes.io/zone; empty: none
  bool cordoned = false;  // spec.unschedulable
  bool ready = true;      // the condition Ready, if there is one
  std::map<std::string, std::string> labels;
  std::vector<Taint> taints;
  std::map<std::string, std::string> allocatable;  // what VMs may ask of it
};

// Both functions block for their requests; errors are KubeClient's. Thread-safe. NOT_FOUND: the
// host no longer exists. PERMISSION_DENIED (kube::IsForbidden): the token lacks the right, and
// callers continue without the host's data.
absl::StatusOr<Host> GetHost(const runtime::Context& context, const kube::KubeClient& client,
                             const std::string& name);
// Sends one list request.
absl::StatusOr<std::vector<Host>> ListHosts(const runtime::Context& context,
                                            const kube::KubeClient& client);

}  // namespace nomad_harvester::harvester

#endif  // NOMAD_HARVESTER_HARVESTER_HOST_H_
