// SPDX-License-Identifier: Apache-2.0
// Label and field selectors.
#ifndef NOMAD_HARVESTER_SIMULATOR_SELECTOR_H_
#define NOMAD_HARVESTER_SIMULATOR_SELECTOR_H_

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json_fwd.hpp"

namespace nomad_harvester::simulator {

class LabelSelector {
 public:
  // kubernetes/kubernetes:staging/src/k8s.io/apimachinery/pkg/labels/selector.go: equality, sets,
  // existence. INVALID_ARGUMENT with the server's message.
  static absl::StatusOr<LabelSelector> Parse(std::string_view text);
  bool Matches(const nlohmann::json& object) const;
  bool empty() const { return requirements_.empty(); }

 private:
  enum class Operator { kIn, kNotIn, kExists, kDoesNotExist };
  struct Requirement {
    std::string key;
    Operator op = Operator::kExists;
    std::set<std::string> values;
  };
  std::vector<Requirement> requirements_;
};

}  // namespace nomad_harvester::simulator

#endif  // NOMAD_HARVESTER_SIMULATOR_SELECTOR_H_
