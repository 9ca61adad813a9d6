// SPDX-License-Identifier: Apache-2.0
// Requests shared by the parts of VmStore.
#ifndef NOMAD_HARVESTER_SRC_HARVESTER_STORE_REQUESTS_H_
#define NOMAD_HARVESTER_SRC_HARVESTER_STORE_REQUESTS_H_

#include <string>

#include "nomad_harvester/kube/client.h"
#include "nomad_harvester/runtime/context.h"

#include "absl/status/status.h"

namespace nomad_harvester::harvester {

// Deletes an object that belongs to a VM, by uid; OK if it no longer exists. Nothing depends on a
// Secret or a claim, so background deletion is enough.
inline absl::Status DeleteByUid(const kube::KubeClient& client, const runtime::Context& context,
                                const kube::ResourceType& type, const std::string& ns,
                                const std::string& name, const std::string& uid) {
  kube::DeleteOptions options;
  options.uid = uid;
  options.propagation = kube::Propagation::kBackground;
  absl::Status status = client.Delete(context, type, ns, name, options);
  return kube::IsNotFound(status) ? absl::OkStatus() : status;
}

}  // namespace nomad_harvester::harvester

#endif  // NOMAD_HARVESTER_SRC_HARVESTER_STORE_REQUESTS_H_
