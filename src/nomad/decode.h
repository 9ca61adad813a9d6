// SPDX-License-Identifier: Apache-2.0
// Decodes Nomad's JSON into plain structs. Members that are missing, null or of another type keep
// the struct's default, because they depend on the server's version and on proxies.
#ifndef NOMAD_HARVESTER_NOMAD_DECODE_H_
#define NOMAD_HARVESTER_NOMAD_DECODE_H_

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "nomad_harvester/base/json_fields.h"
#include "nomad_harvester/nomad/types.h"

#include "absl/status/statusor.h"
#include "nlohmann/json_fwd.hpp"

namespace nomad_harvester::nomad {

// A node of GET /v1/nodes.
const base::JsonFields<Node>& NodeStubFields();
// An allocation of GET /v1/allocations, which has a JobType, or of GET /v1/node/:id/allocations,
// which has a Job with its type.
struct AllocationRecord : Allocation {
  std::string job{};
  std::vector<std::string> tasks_alive{};
};
const base::JsonFields<AllocationRecord>& AllocationFields();

// Complete a record once all its members have been read. INTERNAL without an ID, the only required
// member: nothing can be decided about an object that cannot be identified.
absl::Status FinishNode(Node& node);
absl::Status FinishAllocation(AllocationRecord& record);
// For the list of one node, which also sets `work`.
absl::Status FinishNodeAllocation(AllocationRecord& record);
// For a list without task states.
absl::Status FinishPlacement(AllocationRecord& record);

// An allocation of GET /v1/allocations, for what it holds. The rules of lifecycles apply once all
// tasks are read.
struct PlacementRecord : Placement {
  struct Use {
    std::string task{};
    std::string hook{};
    bool sidecar = false;
    std::int64_t cpu_shares = 0;
    std::int64_t memory_mb = 0;
  };
  std::vector<Use> tasks{};
  // The device that is being read: vendor, type, name.
  std::array<std::string, 3> device{};
  std::int64_t device_ids = 0;
};
const base::JsonFields<PlacementRecord>& PlacementFields();
const base::JsonFields<JobStub>& JobStubFields();
// An evaluation of GET /v1/evaluations.
struct EvaluationRecord : BlockedEvaluation {
  std::string group{};  // that is being read
};
const base::JsonFields<EvaluationRecord>& EvaluationFields();
// INTERNAL without an ID.
absl::Status FinishPlacementRecord(PlacementRecord& record);
absl::Status FinishJobStub(JobStub& stub);
absl::Status FinishEvaluation(EvaluationRecord& record);
// The job of GET /v1/job/:id; INTERNAL without an ID.
absl::StatusOr<Job> DecodeJob(const nlohmann::json& json);

// The node of GET /v1/node/:id; INTERNAL without an ID.
absl::StatusOr<Node> DecodeFullNode(const nlohmann::json& json);

// The union of a token's policies, as hashicorp/nomad:acl/acl.go (NewACL) builds it: rules of the
// same namespace pattern are merged, and a deny takes precedence.
class NamespaceRules {
 public:
  // Adds the `RulesJSON` of one policy (hashicorp/nomad:acl/policy.go, Policy). False if it is not
  // a policy; the rules are then incomplete. Only capabilities count, because the server has
  // already added those that the shorthand `Policy` implies in its version (acl/policy.go, Parse):
  // "scale" contains read-job since Nomad 1.11.1.
  [[nodiscard]] bool Add(const nlohmann::json& rules_json);

  // True if the capability is allowed in every namespace, existing or future: the pattern "*"
  // grants it, and so does every more specific pattern, which takes precedence over "*" for the
  // namespaces that it matches.
  bool AllowsEverywhere(const std::string& capability) const;

 private:
  std::map<std::string, std::set<std::string>> rules_;  // capabilities
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

#endif  // NOMAD_HARVESTER_NOMAD_DECODE_H_
