// SPDX-License-Identifier: Apache-2.0
// What the parts of VmStore share.
#ifndef NOMAD_HARVESTER_SRC_HARVESTER_STORE_REQUESTS_H_
#define NOMAD_HARVESTER_SRC_HARVESTER_STORE_REQUESTS_H_

#include <string>

#include "nomad_harvester/kube/client.h"
#include "nomad_harvester/runtime/context.h"

#include "absl/status/status.h"

namespace nomad_harvester::harvester {

// Deletes what belongs to a VM, by uid: gone already is as good. Nothing depends on a Secret or a
// claim, so that the deletion goes on in the background.
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
