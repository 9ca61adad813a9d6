// SPDX-License-Identifier: Apache-2.0
// What the pod of a VM requests: by Harvester's webhook, by KubeVirt, as Kubernetes counts it.
#ifndef NOMAD_HARVESTER_SIMULATOR_POD_REQUESTS_H_
#define NOMAD_HARVESTER_SIMULATOR_POD_REQUESTS_H_

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>

#include "kube_store.h"

namespace nomad_harvester::simulator {

// By resource; CPUs in thousandths.
using Requests = std::map<std::string, std::int64_t>;

// The elements of a list that may be missing.
const Json& ElementsAt(const Json& object, std::initializer_list<std::string_view> path);

// Harvester's mutator: sets the requests of a VM with limits. Its setting overcommit-config has its
// default: a tenth of the CPUs, two thirds of the memory
// (harvester/harvester:pkg/webhook/resources/virtualmachine/mutator.go, patchResourceOvercommit).
void SetRequests(Json& vm);

// KubeVirt's pod of an instance, on the host of the instance
// (kubevirt/kubevirt:pkg/virt-controller/services/template.go, renderLaunchManifest).
Json LauncherPod(const Json& instance);

// kubernetes/kubernetes:staging/src/k8s.io/component-helpers/resource/helpers.go, PodRequests.
Requests RequestsOf(const Json& pod);

// Of a host: what pods may request. A resource that is missing is not limited, unless it is a
// device.
Requests AllocatableOf(const Json& host);

}  // namespace nomad_harvester::simulator

#endif  // NOMAD_HARVESTER_SIMULATOR_POD_REQUESTS_H_
