// SPDX-License-Identifier: Apache-2.0
// The Nomad client that a guest runs, as configured by its user data.
#ifndef NOMAD_HARVESTER_SIMULATOR_GUEST_H_
#define NOMAD_HARVESTER_SIMULATOR_GUEST_H_

#include <optional>
#include <string>
#include <string_view>

#include "nomad_harvester/simulator/options.h"

#include "kube_store.h"

namespace nomad_harvester::simulator {

// From the `key = "value"` lines of a client's configuration anywhere in the text; for a missing
// key from the VM's annotation nomad-harvester-autoscaler/nodes; else Nomad's default.
NodeSpec ReadGuest(const Json& vm, std::string_view user_data);

// The name of the Secret that the VM's cloud-init volume refers to; empty: none.
std::string UserDataSecretOf(const Json& vm);
// The user data in the Secret, or inline in the VM. Nullopt: the Secret does not exist, and the
// guest cannot start (the kubelet cannot mount it).
std::optional<std::string> UserDataOf(const KubeStore& store, const Json& vm);

}  // namespace nomad_harvester::simulator

#endif  // NOMAD_HARVESTER_SIMULATOR_GUEST_H_
