// SPDX-License-Identifier: Apache-2.0
// Decides which Nomad nodes belong to a pool, with the semantics of the autoscaler SDK
// (hashicorp/nomad-autoscaler:sdk/helper/scaleutils/nodepool, node_identifier.go).
#ifndef NOMAD_HARVESTER_NODEPOOL_IDENTITY_H_
#define NOMAD_HARVESTER_NODEPOOL_IDENTITY_H_

#include <optional>
#include <string>
#include <string_view>

#include "nomad_harvester/nomad/types.h"

namespace nomad_harvester::nodepool {

// The conjunction of the identifiers that are set; an empty string counts as set. At least one must
// be set: without any, the pool contains no node (the SDK's "node pool identification method
// required"). The members are views into a policy or a VM's record, which must outlive it.
struct PoolIdentity {
  std::optional<std::string_view> node_class{};
  std::optional<std::string_view> datacenter{};
  std::optional<std::string_view> node_pool{};

  bool empty() const { return !node_class && !datacenter && !node_pool; }
  // node_class "autoscaler-default-pool" selects nodes without a class.
  bool Contains(const nomad::Node& node) const;
  // "node_class=x, datacenter=y, node_pool=z".
  std::string ToString() const;
  friend bool operator==(const PoolIdentity&, const PoolIdentity&) = default;
};

// True if no node can be in both.
bool Contradict(const PoolIdentity& a, const PoolIdentity& b);

}  // namespace nomad_harvester::nodepool

#endif  // NOMAD_HARVESTER_NODEPOOL_IDENTITY_H_
