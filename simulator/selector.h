// SPDX-License-Identifier: Apache-2.0
// Label and field selectors: equality and inequality, such as "a=b,c!=d".
#ifndef NOMAD_HARVESTER_SIMULATOR_SELECTOR_H_
#define NOMAD_HARVESTER_SIMULATOR_SELECTOR_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json_fwd.hpp"

namespace nomad_harvester::simulator {

// Both parsers: INVALID_ARGUMENT with the server's message
// (kubernetes/kubernetes:staging/src/k8s.io/apimachinery/pkg/{labels,fields}/selector.go); in the
// simulator's own words for what it does not know, such as sets of labels.
class Selector {
 public:
  static absl::StatusOr<Selector> OfLabels(std::string_view text);
  // Refuses a field that is not among `known`, beside those of every resource, metadata.name and
  // metadata.namespace.
  static absl::StatusOr<Selector> OfFields(std::string_view text,
                                           const std::vector<std::string>& known);
  bool Matches(const nlohmann::json& object) const;
  bool empty() const { return requirements_.empty(); }

 private:
  struct Requirement {
    std::vector<std::string> path{};
    bool equal = true;
    std::string value{};
  };
  std::vector<Requirement> requirements_;
};

}  // namespace nomad_harvester::simulator

#endif  // NOMAD_HARVESTER_SIMULATOR_SELECTOR_H_
