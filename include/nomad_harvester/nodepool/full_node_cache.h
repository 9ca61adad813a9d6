// SPDX-License-Identifier: Apache-2.0
// Caches attributes and meta of nodes.
#ifndef NOMAD_HARVESTER_NODEPOOL_FULL_NODE_CACHE_H_
#define NOMAD_HARVESTER_NODEPOOL_FULL_NODE_CACHE_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/nomad/types.h"

namespace nomad_harvester::nodepool {

// Caches the members that a stub lacks: attributes and meta, and of these only what the rules read
// (rule C6). Keyed by ID and ModifyIndex, which changes with each registration
// (hashicorp/nomad:nomad/state/state_store.go, upsertNodeTxn; CreateIndex does not) and with each
// change of status, drain and eligibility, but not with a heartbeat that changes nothing
// (nomad/node_endpoint.go, UpdateStatus). Thread-safe; blocks only on its mutex. Bounded: Keep
// drops entries of nodes that are no longer listed.
class FullNodeCache {
 public:
  // Keeps this attribute, "unique.hostname" or "meta.KEY", from now on. A new one empties the
  // cache. Returns true if that dropped nodes, which a list may have been completed by.
  bool Need(const std::string& attribute);
  // If the cache has this version of the node, adds attributes and meta to the stub and sets
  // `full`.
  bool Complete(nomad::Node* stub) const;
  // Returns the node without what the rules do not read. If it is full, replaces the cached entry,
  // even with the same index, because an index may recur after Nomad's state was restored.
  nomad::Node Remember(nomad::Node full);
  // Grows whenever Complete might add more than before.
  std::uint64_t version() const;
  // Drops entries of nodes that are not in `listed` or are there in a newer version. An entry newer
  // than the list stays, because lists of several pools do not arrive in the order of their
  // indexes.
  void Keep(const std::vector<nomad::Node>& listed);

 private:
  struct Entry {
    std::uint64_t modify_index = 0;
    std::map<std::string, std::string> attributes;
    std::map<std::string, std::string> meta;
    // NOLINTNEXTLINE(modernize-use-nullptr)
    friend bool operator==(const Entry&, const Entry&) = default;
  };

  mutable base::Mutex mutex_;
  std::set<std::string> needed_ NH_GUARDED_BY(mutex_);
  std::map<std::string, Entry> entries_ NH_GUARDED_BY(mutex_);
  std::uint64_t version_ NH_GUARDED_BY(mutex_) = 0;
};

}  // namespace nomad_harvester::nodepool

#endif  // NOMAD_HARVESTER_NODEPOOL_FULL_NODE_CACHE_H_
