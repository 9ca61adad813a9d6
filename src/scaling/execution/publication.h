// SPDX-License-Identifier: Apache-2.0
// Publishes on which Harvester host a VM runs (publish_host). Private to module scaling.
#ifndef NOMAD_HARVESTER_SRC_SCALING_PUBLICATION_H_
#define NOMAD_HARVESTER_SRC_SCALING_PUBLICATION_H_

#include "nomad_harvester/scaling/rules.h"

#include "execution/pool_dependencies.h"
#include "rules/retries.h"

namespace nomad_harvester::scaling {

// Carries out kPublishHost or kUnpublishHost: sets or unsets the metadata of the step's node, and
// then, with the resourceVersion of `view`, the annotation published-host. If the process is killed
// between the two, the same is done again (docs/adr/0024). Blocks for a few seconds at most, if the
// node's client hangs. `asking` is for what may be cancelled at any time, `writing` for the PATCH.
Effect Publish(const runtime::Context& asking, const runtime::Context& writing,
               const PoolDependencies& deps, const VmView& view, const Step& step);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SRC_SCALING_PUBLICATION_H_
