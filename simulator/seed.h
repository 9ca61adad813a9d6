// SPDX-License-Identifier: Apache-2.0
// The initial objects of a simulated Harvester.
#ifndef NOMAD_HARVESTER_SIMULATOR_SEED_H_
#define NOMAD_HARVESTER_SIMULATOR_SEED_H_

#include <string>

#include "nomad_harvester/simulator/options.h"

#include "kube_store.h"

namespace nomad_harvester::simulator {

void Seed(KubeStore& store, const Options& options);

// By "ns/name", with the resource name or display name; null if there is none.
Object FindImage(const KubeStore& store, const std::string& image);
// The image with the conditions of one that is imported, or is still being imported.
Json WithImageReady(const Json& image, bool ready, base::WallTime now);

}  // namespace nomad_harvester::simulator

#endif  // NOMAD_HARVESTER_SIMULATOR_SEED_H_
