// SPDX-License-Identifier: Apache-2.0
// What else lives in a cluster and must stay as it is, whatever the plugin does for its own pool: a
// volume, a Secret and nodes of operators, a drain of theirs, another pool in the namespace, and
// another namespace with a pool of the same name.
#ifndef NOMAD_HARVESTER_TEST_SCENARIO_BYSTANDERS_H_
#define NOMAD_HARVESTER_TEST_SCENARIO_BYSTANDERS_H_

#include <map>
#include <string>
#include <vector>

#include "nomad_harvester/simulator/cluster.h"

#include "nlohmann/json_fwd.hpp"
#include "support/fake_clock.h"

namespace nomad_harvester::scenario {

class Bystanders {
 public:
  // Puts them into the cluster as an administrator would, without the plugin, and advances the
  // clock until their machines have joined Nomad. Their nodes are ineligible, so that work goes to
  // the nodes of the scenario alone.
  Bystanders(support::FakeClock& clock, simulator::Cluster& cluster);

  // Whether a Kubernetes object or a Nomad node is one of them.
  bool Include(const nlohmann::json& object) const;
  // The others.
  std::vector<nlohmann::json> Without(std::vector<nlohmann::json> objects) const;
  // Nomad was restored, and their agents have registered again: their nodes stay as they are then.
  // Those without an agent are gone.
  void NomadWasRestored();
  // One line for each that is gone or is not as it was left.
  std::vector<std::string> Changes() const;

 private:
  std::map<std::string, nlohmann::json> Present() const;

  const support::FakeClock& clock_;
  simulator::Cluster& cluster_;
  const base::MonoTime made_at_;
  std::map<std::string, nlohmann::json> kept_;  // by uid or node ID
};

}  // namespace nomad_harvester::scenario

#endif  // NOMAD_HARVESTER_TEST_SCENARIO_BYSTANDERS_H_
