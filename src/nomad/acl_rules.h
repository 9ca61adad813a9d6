// SPDX-License-Identifier: Apache-2.0
// What the namespace rules of ACL policies say about read-job.
#ifndef NOMAD_HARVESTER_SRC_NOMAD_ACL_RULES_H_
#define NOMAD_HARVESTER_SRC_NOMAD_ACL_RULES_H_

#include <map>
#include <string>

#include "nlohmann/json_fwd.hpp"

namespace nomad_harvester::nomad {

// The union of a token's policies, as hashicorp/nomad:acl/acl.go (NewACL) builds it: rules of the
// same namespace pattern are merged, a deny among them wins.
class NamespaceRules {
 public:
  // Adds the `RulesJSON` of one policy (hashicorp/nomad:acl/policy.go, Policy). False if it is not
  // one: then nothing can be said.
  [[nodiscard]] bool Add(const nlohmann::json& rules_json);

  // Whether read-job holds in every namespace there is or will be: the pattern "*" grants it, and
  // no more specific pattern, which would win over "*" for the namespaces that it matches, fails
  // to.
  bool ReadJobEverywhere() const;

 private:
  struct Rule {
    bool read_job = false;
    bool denied = false;
  };
  std::map<std::string, Rule> rules_;
};

}  // namespace nomad_harvester::nomad

#endif  // NOMAD_HARVESTER_SRC_NOMAD_ACL_RULES_H_
