// SPDX-License-Identifier: Apache-2.0
// Cached attributes and meta of nodes.
#ifndef NOMAD_HARVESTER_NODEPOOL_FULL_NODE_CACHE_H_
#define NOMAD_HARVESTER_NODEPOOL_FULL_NODE_CACHE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/nomad/types.h"

namespace nomad_harvester::nodepool {

// Caches what a stub lacks: attributes and meta, which a registration fixes. Keyed by ID and create
// index (rule C6). Thread-safe. Bounded: Keep drops entries of nodes that are no longer listed.
class FullNodeCache {
 public:
  // If the node is cached, adds attributes and meta to the stub and sets `full`.
  bool Complete(nomad::Node* stub) const;
  void Remember(const nomad::Node& full);
  void Keep(const std::vector<nomad::Node>& listed);

 private:
  struct Known {
    std::uint64_t create_index = 0;
    std::map<std::string, std::string> attributes;
    std::map<std::string, std::string> meta;
  };
  mutable base::Mutex mutex_;
  std::map<std::string, Known> known_ NH_GUARDED_BY(mutex_);
};

}  // namespace nomad_harvester::nodepool

#endif  // NOMAD_HARVESTER_NODEPOOL_FULL_NODE_CACHE_H_
