// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/nomad/client.h"

#include "caller.h"
#include "decode.h"

namespace nomad_harvester::nomad {
namespace {

using Json = nlohmann::json;

// The result of one read of the token's rights: the object, refused, missing, or ACLs are off. If
// Nomad cannot be reached, the read fails with an error instead.
struct Reading {
  enum class Kind { kRead, kRefused, kAclsOff, kMissing };
  Kind kind = Kind::kRead;
  Json json;
};

// hashicorp/nomad:nomad/acl_endpoint.go, aclDisabled.
bool SaysAclsAreOff(const absl::Status& status) {
  return status.code() == absl::StatusCode::kInvalidArgument &&
         base::Message(status).find("ACL support disabled") != std::string::npos;
}

class Verify {
 public:
  explicit Verify(const Caller& caller) : caller_(caller) {}

  absl::StatusOr<TokenRights> Run() const {
    NH_ASSIGN_OR_RETURN(const Reading self, Read("/v1/acl/token/self", "read the Nomad token"));
    if (self.kind == Reading::Kind::kAclsOff || IsAllMighty(self.json)) return kAll;
    if (self.kind == Reading::Kind::kRefused) return kUnverified;
    std::vector<std::string> names = base::GetStrings(self.json, "Policies");
    // A workload identity is not a token object (404), and a role's policies are not listed in the
    // token. In both cases the policies that the token may read are its own.
    const Json* roles = base::FindMember(self.json, "Roles");
    if (self.kind == Reading::Kind::kMissing || (roles != nullptr && !roles->empty())) {
      NH_ASSIGN_OR_RETURN(const Reading list,
                          Read("/v1/acl/policies", "list the token's policies"));
      if (list.kind == Reading::Kind::kAclsOff) return kAll;
      if (list.kind != Reading::Kind::kRead || !list.json.is_array()) return kUnverified;
      names.clear();
      for (const Json& stub : list.json) names.push_back(base::GetString(stub, "Name"));
    }
    return VerifyPolicies(names);
  }

 private:
  static constexpr TokenRights kAll{
      .read_job = ReadJob::kEverywhere, .list_jobs = true, .node_write = NodeWrite::kAllowed};
  static constexpr TokenRights kUnverified{.read_job = ReadJob::kUnverified,
                                           .node_write = NodeWrite::kUnverified};

  // With ACLs off, newer servers return this token instead of an error
  // (hashicorp/nomad:nomad/structs/acl.go, ACLsDisabledToken).
  static bool IsAllMighty(const Json& token) {
    return base::GetString(token, "Type") == "management" ||
           base::GetString(token, "AccessorID") == "acls-disabled";
  }

  absl::StatusOr<TokenRights> VerifyPolicies(const std::vector<std::string>& names) const {
    NamespaceRules rules;
    NodeRule node;
    for (const std::string& name : names) {
      auto path = PathOf("/v1/acl/policy/", name);
      if (!path.ok()) return kUnverified;
      NH_ASSIGN_OR_RETURN(const Reading policy,
                          Read(*std::move(path), "read Nomad ACL policy " + name));
      if (policy.kind == Reading::Kind::kAclsOff) return kAll;
      // A token may name a policy that does not exist; it grants nothing.
      if (policy.kind == Reading::Kind::kMissing) continue;
      if (policy.kind == Reading::Kind::kRefused) return kUnverified;
      const Json* parsed = base::FindMember(policy.json, "RulesJSON");
      if (parsed == nullptr || !rules.Add(*parsed)) return kUnverified;
      node.Add(*parsed);
    }
    return TokenRights{
        .read_job = rules.AllowsEverywhere("read-job") ? ReadJob::kEverywhere : ReadJob::kDenied,
        .list_jobs = rules.AllowsEverywhere("list-jobs"),
        .node_write = node.MayWrite() ? NodeWrite::kAllowed : NodeWrite::kDenied};
  }

  absl::StatusOr<Reading> Read(std::string path, const std::string& purpose) const {
    const auto reply = caller_.Get({std::move(path), purpose, ""});
    Reading reading;
    if (reply.ok()) {
      NH_ASSIGN_OR_RETURN(reading.json, base::ParseJson(reply->body, purpose + ": the reply"));
      return reading;
    }
    switch (reply.status().code()) {
      case absl::StatusCode::kNotFound:
        reading.kind = Reading::Kind::kMissing;
        return reading;
      case absl::StatusCode::kInvalidArgument:
      case absl::StatusCode::kPermissionDenied:
      case absl::StatusCode::kUnauthenticated:
      case absl::StatusCode::kUnimplemented:
        reading.kind =
            SaysAclsAreOff(reply.status()) ? Reading::Kind::kAclsOff : Reading::Kind::kRefused;
        return reading;
      default:
        return reply.status();
    }
  }

  const Caller& caller_;
};

}  // namespace

bool NamespaceRules::Add(const Json& rules_json) {
  if (!rules_json.is_object()) return false;
  const auto* list = base::FindMember(rules_json, "Namespaces");
  // A policy without namespace rules has null here.
  if (list == nullptr || list->is_null()) return true;
  if (!list->is_array()) return false;
  for (const Json& entry : *list) {
    if (!entry.is_object()) return false;
    const std::vector<std::string> capabilities = base::GetStrings(entry, "Capabilities");
    rules_[base::GetString(entry, "Name")].insert(capabilities.begin(), capabilities.end());
  }
  return true;
}

bool NamespaceRules::AllowsEverywhere(const std::string& capability) const {
  return rules_.contains("*") && std::all_of(rules_.begin(), rules_.end(), [&](const auto& entry) {
           return entry.second.contains(capability) && !entry.second.contains("deny");
         });
}

void NodeRule::Add(const Json& rules_json) {
  const Json* node = base::FindMember(rules_json, "Node");
  if (node == nullptr || !node->is_object()) return;
  const std::string policy = base::GetString(*node, "Policy");
  write_ = write_ || policy == "write";
  denied_ = denied_ || policy == "deny";
}

absl::StatusOr<TokenRights> NomadClient::VerifyRights(const runtime::Context& context) const {
  const Caller caller(*transport_, context, options_);
  return Verify(caller).Run();
}

absl::StatusOr<ReadJob> NomadClient::VerifyReadJob(const runtime::Context& context) const {
  NH_ASSIGN_OR_RETURN(const TokenRights rights, VerifyRights(context));
  return rights.read_job;
}

}  // namespace nomad_harvester::nomad
