// The safety invariants of ARCHITECTURE.md, checked after every change of the simulated cluster.
#ifndef NOMAD_HARVESTER_TEST_SCENARIO_INVARIANTS_H_
#define NOMAD_HARVESTER_TEST_SCENARIO_INVARIANTS_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "nomad_harvester/simulator/cluster.h"

namespace nomad_harvester::scenario {

class Invariants {
 public:
  // Watches `cluster` until destroyed.
  explicit Invariants(simulator::Cluster& cluster);
  ~Invariants();

  // What the next Scale may do: VMs there when it began, and wanted. I2 and I3 hold against it.
  void Allow(std::int64_t wanted);

  const std::vector<std::string>& violations() const { return violations_; }
  // I4 and I5, and that `count` VMs stand.
  std::vector<std::string> AtRest(std::int64_t count) const;
  int checks() const { return checks_; }

 private:
  void Check(const simulator::Event& event);
  void CheckDeletion(const simulator::Event& event);
  std::int64_t StandingVms() const;

  simulator::Cluster& cluster_;
  std::vector<std::string> violations_;
  std::int64_t wanted_ = 0;
  std::int64_t removals_left_ = 0;
  std::set<std::string> removed_;  // uids whose deletion was requested
  int checks_ = 0;
};

}  // namespace nomad_harvester::scenario

#endif  // NOMAD_HARVESTER_TEST_SCENARIO_INVARIANTS_H_
