// SPDX-License-Identifier: Apache-2.0
// What is remembered of nodes between reads.
#ifndef NOMAD_HARVESTER_NODEPOOL_FULL_NODE_CACHE_H_
#define NOMAD_HARVESTER_NODEPOOL_FULL_NODE_CACHE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/nomad/types.h"

namespace nomad_harvester::nodepool {

// A cache of what a stub does not tell: attributes and meta, which a registration fixes. Remembered
// by ID and create index (rule C6). Thread-safe; bounded: entries of nodes that a list no longer
// names are dropped by Keep.
class FullNodeCache {
 public:
  // Adds attributes and meta to the stub and sets `full`, if they are remembered.
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
