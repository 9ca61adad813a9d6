// SPDX-License-Identifier: Apache-2.0
// Evaluates the rules of ACL policies: read-job in namespaces, and writing nodes.
#ifndef NOMAD_HARVESTER_SRC_NOMAD_ACL_RULES_H_
#define NOMAD_HARVESTER_SRC_NOMAD_ACL_RULES_H_

#include <map>
#include <string>

#include "nlohmann/json_fwd.hpp"

namespace nomad_harvester::nomad {

// The union of a token's policies, as hashicorp/nomad:acl/acl.go (NewACL) builds it: rules of the
// same namespace pattern are merged, and a deny takes precedence.
class NamespaceRules {
 public:
  // Adds the `RulesJSON` of one policy (hashicorp/nomad:acl/policy.go, Policy). False if it is not
  // a policy; the rules are then incomplete. Only capabilities count, because the server has
  // already added those that the shorthand `Policy` implies in its version (acl/policy.go, Parse):
  // "scale" contains read-job since Nomad 1.11.1.
  [[nodiscard]] bool Add(const nlohmann::json& rules_json);

  // True if read-job is allowed in every namespace, existing or future: the pattern "*" grants it,
  // and so does every more specific pattern, which takes precedence over "*" for the namespaces
  // that it matches.
  bool ReadJobEverywhere() const;

 private:
  struct Rule {
    bool read_job = false;
    bool denied = false;
  };
  std::map<std::string, Rule> rules_;
};

// The union of the policies' rules for nodes (hashicorp/nomad:acl/acl.go, maxPrivilege).
class NodeRule {
 public:
  // As above, but a value that is not a policy grants nothing.
  void Add(const nlohmann::json& rules_json);
  bool MayWrite() const { return write_ && !denied_; }

 private:
  bool write_ = false;
  bool denied_ = false;
};

}  // namespace nomad_harvester::nomad

#endif  // NOMAD_HARVESTER_SRC_NOMAD_ACL_RULES_H_
