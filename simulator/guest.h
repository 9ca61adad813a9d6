// SPDX-License-Identifier: Apache-2.0
// What a guest learns from its user data about the Nomad client that it is to run.
#ifndef NOMAD_HARVESTER_SIMULATOR_GUEST_H_
#define NOMAD_HARVESTER_SIMULATOR_GUEST_H_

#include <optional>
#include <string>
#include <string_view>

#include "nomad_harvester/simulator/options.h"

#include "kube_store.h"

namespace nomad_harvester::simulator {

// The `key = "value"` lines of a client's configuration, wherever in the text they stand, over the
// annotation nomad-harvester-autoscaler/nodes of the VM, over Nomad's defaults.
NodeSpec ReadGuest(const Json& vm, std::string_view user_data);

// The name of the Secret that the VM's cloud-init volume refers to; empty: none.
std::string UserDataSecretOf(const Json& vm);
// What the Secret holds as user data, or what stands in the VM itself; nothing: the Secret is not
// there, and the guest cannot start (the kubelet cannot mount it).
std::optional<std::string> UserDataOf(const KubeStore& store, const Json& vm);

}  // namespace nomad_harvester::simulator

#endif  // NOMAD_HARVESTER_SIMULATOR_GUEST_H_
