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

// kubernetes/kubernetes:staging/src/k8s.io/apimachinery/pkg/fields/selector.go: equality and
// inequality, without the escapes.
class FieldSelector {
 public:
  // INVALID_ARGUMENT with the server's message: also for a field that is not among `known`, beside
  // those of every resource, metadata.name and metadata.namespace.
  static absl::StatusOr<FieldSelector> Parse(std::string_view text,
                                             const std::vector<std::string_view>& known);
  bool Matches(const nlohmann::json& object) const;
  bool empty() const { return requirements_.empty(); }

 private:
  struct Requirement {
    std::string field;
    bool equal = true;
    std::string value;
  };
  std::vector<Requirement> requirements_;
};

}  // namespace nomad_harvester::simulator

#endif  // NOMAD_HARVESTER_SIMULATOR_SELECTOR_H_
