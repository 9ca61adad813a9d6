// SPDX-License-Identifier: Apache-2.0
// The pod of a VM that no host takes, with what Kubernetes' scheduler says about it.
#ifndef NOMAD_HARVESTER_TEST_SUPPORT_LAUNCHER_POD_H_
#define NOMAD_HARVESTER_TEST_SUPPORT_LAUNCHER_POD_H_

#include <string>

#include <nlohmann/json.hpp>

namespace nomad_harvester::support {

inline nlohmann::json UnscheduledPod(const std::string& vm, const std::string& message) {
  return {
      {"apiVersion", "v1"},
      {"kind", "Pod"},
      {"metadata",
       {{"name", "virt-launcher-" + vm},
        {"namespace", "nomad"},
        {"labels", {{"kubevirt.io", "virt-launcher"}}},
        {"annotations", {{"kubevirt.io/domain", vm}}}}},
      {"status",
       {{"conditions", {{{"type", "PodScheduled"}, {"status", "False"}, {"message", message}}}}}}};
}

}  // namespace nomad_harvester::support

#endif  // NOMAD_HARVESTER_TEST_SUPPORT_LAUNCHER_POD_H_
