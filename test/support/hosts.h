// SPDX-License-Identifier: Apache-2.0
// Hosts of a simulated Harvester.
#ifndef NOMAD_HARVESTER_TEST_SUPPORT_HOSTS_H_
#define NOMAD_HARVESTER_TEST_SUPPORT_HOSTS_H_

#include <algorithm>
#include <string>

#include "nomad_harvester/simulator/options.h"

#include "nlohmann/json.hpp"

namespace nomad_harvester::support {

// rack1-a and rack2-a, each in a zone of its own.
inline simulator::Options TwoHosts() {
  simulator::Options options;
  options.hosts = {{.name = "rack1-a", .zone = "rack1"}, {.name = "rack2-a", .zone = "rack2"}};
  return options;
}

// For Cluster::PutObject: a host in a zone.
inline nlohmann::json HostIn(const std::string& zone) {
  return {{"apiVersion", "v1"},
          {"kind", "Node"},
          {"metadata",
           {{"name", "host-" + zone}, {"labels", {{"topology.kubernetes.io/zone", zone}}}}}};
}

// For Cluster::PutObject: a host on which pods may request so much memory together, such as "4Gi".
inline nlohmann::json HostWith(const std::string& name, const std::string& memory) {
  return {{"apiVersion", "v1"},
          {"kind", "Node"},
          {"metadata", {{"name", name}}},
          {"status", {{"allocatable", {{"memory", memory}}}}}};
}

// For Cluster::PutObject, as "kubectl cordon" and "kubectl uncordon" leave it.
inline nlohmann::json Host(const std::string& name, bool cordoned) {
  return {{"apiVersion", "v1"},
          {"kind", "Node"},
          {"metadata", {{"name", name}}},
          {"spec", {{"unschedulable", cordoned}}}};
}

inline bool IsPinned(const nlohmann::json& vm) {
  const nlohmann::json condition = {{"type", "LiveMigratable"}, {"status", "False"}};
  const nlohmann::json conditions = vm.at("status").value("conditions", nlohmann::json::array());
  return std::find(conditions.begin(), conditions.end(), condition) != conditions.end();
}

// For Cluster::PutObject: the VM as KubeVirt reports a guest with a device of its host.
inline nlohmann::json Pinned(nlohmann::json vm) {
  nlohmann::json conditions = nlohmann::json::array();
  for (const nlohmann::json& condition : vm["status"].value("conditions", conditions)) {
    if (condition.at("type") != "LiveMigratable") conditions.push_back(condition);
  }
  conditions.push_back({{"type", "LiveMigratable"}, {"status", "False"}});
  vm["status"]["conditions"] = conditions;
  return vm;
}

}  // namespace nomad_harvester::support

#endif  // NOMAD_HARVESTER_TEST_SUPPORT_HOSTS_H_
