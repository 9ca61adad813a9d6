// SPDX-License-Identifier: Apache-2.0
// Kubernetes' scheduler: whether a host takes a pod.
#ifndef NOMAD_HARVESTER_SIMULATOR_KUBE_SCHEDULER_H_
#define NOMAD_HARVESTER_SIMULATOR_KUBE_SCHEDULER_H_

#include <string>
#include <vector>

#include "kube_store.h"
#include "pod_requests.h"

namespace nomad_harvester::simulator {

// Why the host does not take the pod of an instance, in the scheduler's words; empty: it does. The
// instance's anti-affinity is another question. `used`: by the pods on the host; `wanted`: by that
// pod.
std::vector<std::string> ReasonsAgainst(const Json& host, const Json& instance,
                                        const Requests& used, const Requests& wanted);

// The labels of pods beside which, on a host, the pod of an instance must not run: those of its
// required anti-affinity by host name.
std::vector<Json> LabelsToAvoid(const Json& instance);
bool HasLabels(const Json& labels, const Json& wanted);

}  // namespace nomad_harvester::simulator

#endif  // NOMAD_HARVESTER_SIMULATOR_KUBE_SCHEDULER_H_
