// SPDX-License-Identifier: Apache-2.0
// Disturbances of the simulated systems in a soak: failing requests, and operators who follow no
// rules.
#ifndef NOMAD_HARVESTER_TEST_SCENARIO_CHAOS_H_
#define NOMAD_HARVESTER_TEST_SCENARIO_CHAOS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "nomad_harvester/runtime/random.h"
#include "nomad_harvester/simulator/cluster.h"

#include "bystanders.h"
#include "nlohmann/json_fwd.hpp"
#include "support/fake_clock.h"

namespace nomad_harvester::scenario {

// Chooses by a seed.
class Dice {
 public:
  explicit Dice(runtime::Random& random) : random_(random) {}
  bool Percent(double chance) { return random_.NextFraction() * 100 < chance; }
  std::size_t Below(std::size_t limit) { return random_.Next() % limit; }
  base::Duration Between(base::Duration least, base::Duration most) {
    const auto span = static_cast<std::uint64_t>((most - least).count());
    return least + base::Duration(static_cast<std::int64_t>(random_.Next() % (span + 1)));
  }
  template <typename T>
  const T& Of(const std::vector<T>& items) {
    return items[Below(items.size())];
  }

 private:
  runtime::Random& random_;
};

// A randomly chosen fault of a request.
simulator::Fault MakeFault(Dice& dice, support::FakeClock& clock,
                           const simulator::RequestInfo& request);

// All other users of the cluster. They leave the bystanders alone.
class Operators {
 public:
  Operators(Dice& dice, support::FakeClock& clock, simulator::Cluster& cluster,
            const Bystanders& bystanders)
      : dice_(dice), clock_(clock), cluster_(cluster), bystanders_(bystanders) {}

  // A random action without regard to its effect; most are undone by an operator some minutes
  // later.
  void Act();
  // They stop acting and repair what only they can: VMs that hang, are stopped or were copied, and
  // nodes that they drain.
  void Leave();
  // "stop web-abc" → how often.
  const std::map<std::string, int>& acts() const { return acts_; }

 private:
  void ActOnNode(const std::string& vm, const std::string& node);
  void ActOnVm(const std::string& vm);
  void Copy(const std::string& vm);
  void Cordon();
  void Pin(nlohmann::json vm);
  void Note(const std::string& what) { ++acts_[what]; }
  // Schedules the repair.
  void Later(std::function<void()> fn);

  Dice& dice_;
  support::FakeClock& clock_;
  simulator::Cluster& cluster_;
  const Bystanders& bystanders_;
  std::map<std::string, int> acts_;
  int copies_ = 0;
  bool cordoned_ = false;
};

}  // namespace nomad_harvester::scenario

#endif  // NOMAD_HARVESTER_TEST_SCENARIO_CHAOS_H_
