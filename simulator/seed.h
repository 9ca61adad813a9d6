// SPDX-License-Identifier: Apache-2.0
// What a simulated Harvester holds before anybody asks.
#ifndef NOMAD_HARVESTER_SIMULATOR_SEED_H_
#define NOMAD_HARVESTER_SIMULATOR_SEED_H_

#include <string>

#include "nomad_harvester/simulator/options.h"

#include "kube_store.h"

namespace nomad_harvester::simulator {

void Seed(KubeStore& store, const Options& options);

// By resource name or display name, "ns/name"; null if there is none.
Object FindImage(const KubeStore& store, const std::string& image);
// With the conditions of an image that is imported, or still on its way.
Json WithImageReady(const Json& image, bool ready, base::WallTime now);

}  // namespace nomad_harvester::simulator

#endif  // NOMAD_HARVESTER_SIMULATOR_SEED_H_
