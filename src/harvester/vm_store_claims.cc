// SPDX-License-Identifier: Apache-2.0
// VmStore: PersistentVolumeClaims.
#include <string>
#include <utility>
#include <vector>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/harvester/vm_store.h"

#include "nlohmann/json.hpp"
#include "object_fields.h"
#include "store_requests.h"

namespace nomad_harvester::harvester {
namespace {

Claim ParseClaim(const nlohmann::json& object) {
  Metadata metadata = ParseMetadata(object);
  Claim claim;
  claim.name = std::move(metadata.name);
  claim.uid = std::move(metadata.uid);
  claim.pool = ValueOf(metadata.labels, kPoolLabel);
  claim.terminating = metadata.deleted_at.has_value();
  return claim;
}

}  // namespace

// Without a selector: the claims of CDI images have lost the labels of their template and can only
// be recognised by name (harvester/harvester:pkg/controller/master/virtualmachine/vm_controller.go,
// createDataVolume).
absl::StatusOr<std::vector<Claim>> VmStore::ListClaims(const runtime::Context& context) const {
  kube::ListOptions options;
  options.drop = {"metadata.annotations", "metadata.finalizers", "metadata.ownerReferences", "spec",
                  "status"};
  NH_ASSIGN_OR_RETURN(const kube::ObservedList list,
                      client_->List(context, kube::kPersistentVolumeClaims, ns_, options));
  std::vector<Claim> claims;
  for (const nlohmann::json& item : list.items) claims.push_back(ParseClaim(item));
  return claims;
}

absl::Status VmStore::DeleteClaim(const runtime::Context& context, const Claim& claim) const {
  return DeleteByUid(*client_, context, kube::kPersistentVolumeClaims, ns_, claim.name, claim.uid);
}

}  // namespace nomad_harvester::harvester
