// SPDX-License-Identifier: Apache-2.0
// Harvester's templates of VMs: what its webhooks deny, and what its controllers write.
#ifndef NOMAD_HARVESTER_SIMULATOR_TEMPLATES_H_
#define NOMAD_HARVESTER_SIMULATOR_TEMPLATES_H_

#include <optional>

#include "nomad_harvester/base/time.h"
#include "nomad_harvester/http/message.h"

#include "kube_store.h"

namespace nomad_harvester::simulator {

// The denial of a new version, if any. A version is never changed afterwards.
std::optional<http::HttpResponse> AdmitTemplateVersion(const KubeStore& store, const Json& version);
http::HttpResponse DenyTemplateVersionChange();
// The denial of the deletion of a template's default version.
std::optional<http::HttpResponse> AdmitTemplateVersionDeletion(const KubeStore& store,
                                                               const Json& version);

// Numbers the new versions, says which ones are ready, and makes a template's first version its
// default one. A version without a template stays as it is.
void SettleTemplates(KubeStore& store, base::WallTime now);

}  // namespace nomad_harvester::simulator

#endif  // NOMAD_HARVESTER_SIMULATOR_TEMPLATES_H_
