// SPDX-License-Identifier: Apache-2.0
// The rules of Cluster::Refuse, and what the servers answer by them. Guarded by the cluster's
// mutex.
#ifndef NOMAD_HARVESTER_SIMULATOR_REFUSALS_H_
#define NOMAD_HARVESTER_SIMULATOR_REFUSALS_H_

#include <map>
#include <optional>

#include "nomad_harvester/http/message.h"
#include "nomad_harvester/simulator/fault.h"

namespace nomad_harvester::simulator {

class Refusals {
 public:
  int Add(RefusalRule rule);
  void Remove(int id) { rules_.erase(id); }
  void Clear() { rules_.clear(); }

  // The slowest of the rules that match.
  base::Duration TimeOf(System system, const http::HttpRequest& request) const;
  // Nullopt: it is not refused.
  std::optional<http::HttpResponse> AnswerTo(System system, const http::HttpRequest& request) const;

 private:
  std::map<int, RefusalRule> rules_;  // in order of age
  int last_id_ = 0;
};

}  // namespace nomad_harvester::simulator

#endif  // NOMAD_HARVESTER_SIMULATOR_REFUSALS_H_
