// SPDX-License-Identifier: Apache-2.0
// The Nomad clusters beside one Harvester. Guarded by the cluster's mutex.
#ifndef NOMAD_HARVESTER_SIMULATOR_NOMADS_H_
#define NOMAD_HARVESTER_SIMULATOR_NOMADS_H_

#include <map>
#include <string>

#include "nomad_api.h"
#include "nomad_state.h"

namespace nomad_harvester::simulator {

struct Nomad {
  explicit Nomad(World& world) : state(world), api(world, state) {
    api.acl = !world.options.nomad_token.empty();
  }
  NomadState state;
  NomadApi api;
};

class Nomads {
 public:
  explicit Nomads(World& world) : world_(world) {}

  // By name, that of the first one is empty; it exists from its first mention. It stays where it
  // is.
  Nomad& At(const std::string& name) { return all_.try_emplace(name, world_).first->second; }
  Nomad& first() { return At(""); }
  // The one that knows the node, by ID or name; null: none does.
  NomadState* WithNode(const std::string& id_or_name) {
    for (auto& [name, nomad] : all_) {
      if (nomad.state.LookUp(id_or_name) != nullptr) return &nomad.state;
    }
    return nullptr;
  }
  std::map<std::string, Nomad>& all() { return all_; }

 private:
  World& world_;
  std::map<std::string, Nomad> all_;
};

}  // namespace nomad_harvester::simulator

#endif  // NOMAD_HARVESTER_SIMULATOR_NOMADS_H_
