// SPDX-License-Identifier: Apache-2.0
// The part of the Nomad API that the plugin uses.
#ifndef NOMAD_HARVESTER_NOMAD_CLIENT_H_
#define NOMAD_HARVESTER_NOMAD_CLIENT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nomad_harvester/http/transport.h"
#include "nomad_harvester/nomad/types.h"
#include "nomad_harvester/runtime/context.h"

#include "absl/status/statusor.h"

namespace nomad_harvester::nomad {

struct ReadOptions {
  // A blocking query: returns when something after `index` has changed or `wait` has expired. With
  // index 0 or wait 0 the query does not block. It may return without a change.
  std::uint64_t index = 0;
  base::Duration wait{};
};

// Whether the token has read-job (GetAllocs in hashicorp/nomad:nomad/node_endpoint.go silently
// leaves out the allocations of namespaces in which the token lacks read-job).
enum class ReadJob {
  kEverywhere,  // ACLs are off, a management token, or read-job for every namespace
  kDenied,      // the token's policies do not grant it
  kUnverified,  // the policies could not be read
};

// HTTP → code: 400 INVALID_ARGUMENT; 401 UNAUTHENTICATED; 403 PERMISSION_DENIED; 404, and a 500
// with the text "node not found" (the reply of writes), NOT_FOUND; 405 UNIMPLEMENTED; 429
// UNAVAILABLE; 500 "can not set node's scheduling eligibility to eligible while it is draining"
// FAILED_PRECONDITION; 500 "invalid scheduling eligibility" INVALID_ARGUMENT; 500 "ACL token
// expired" PERMISSION_DENIED; 500 "No cluster leader", "Not ready to serve consistent reads" or "No
// path to region" UNAVAILABLE; other 500 and 5xx INTERNAL; 408 and 502-504 UNAVAILABLE; redirects
// and other 4xx FAILED_PRECONDITION. Bodies are plain text; the message is "<purpose>: <text> (HTTP
// nnn)", one line. OK for 2xx.
absl::Status ToStatus(const http::HttpResponse& response, std::string_view purpose);

// A 500 that a retry cannot change ("node not found", a running drain, …): for
// http::RetryOptions::permanently_refused.
bool IsPermanentRefusal(const http::HttpResponse& response);

// Thread-safe; every call blocks for the request. Region and namespace are sent as query
// parameters.
class NomadClient {
 public:
  struct Options {
    std::string region{};  // empty: the agent's own
    std::string ns{};
  };
  NomadClient(std::shared_ptr<http::HttpTransport> transport, Options options);

  // GET /v1/nodes?resources=true: stubs of all nodes, in pages.
  absl::StatusOr<Indexed<std::vector<Node>>> ListNodes(const runtime::Context& context,
                                                       const ReadOptions& options = {}) const;
  // GET /v1/node/:id. NOT_FOUND if the node does not exist.
  absl::StatusOr<Indexed<Node>> GetNode(const runtime::Context& context, const std::string& id,
                                        const ReadOptions& options = {}) const;
  // GET /v1/node/:id/allocations.
  absl::StatusOr<Indexed<std::vector<Allocation>>> NodeAllocations(
      const runtime::Context& context, const std::string& id,
      const ReadOptions& options = {}) const;
  // GET /v1/allocations?namespace=*: all allocations of the region, as stubs with task states.
  // PERMISSION_DENIED if the token has read-job in no namespace.
  absl::StatusOr<Indexed<std::vector<Allocation>>> ListAllocations(
      const runtime::Context& context, const ReadOptions& options = {}) const;
  // GET /v1/allocation/:id → NodeID.
  absl::StatusOr<std::string> NodeOfAllocation(const runtime::Context& context,
                                               const std::string& allocation_id) const;

  // POST /v1/node/:id/drain. Sent once: a repeated POST would restart the deadline. After an
  // unknown outcome the caller reads the node.
  absl::Status Drain(const runtime::Context& context, const std::string& id,
                     const DrainSpec& spec) const;
  // The same endpoint with a null spec and MarkEligible: cancels a running drain. Idempotent.
  absl::Status CancelDrain(const runtime::Context& context, const std::string& id,
                           bool mark_eligible) const;
  // POST /v1/node/:id/eligibility. FAILED_PRECONDITION while a drain runs. Idempotent.
  absl::Status SetEligible(const runtime::Context& context, const std::string& id,
                           bool eligible) const;
  // POST /v1/node/:id/purge; NOT_FOUND if the node does not exist. Idempotent.
  absl::Status Purge(const runtime::Context& context, const std::string& id) const;

  // The configured region; empty: the region of the agent that replies.
  const std::string& region() const { return options_.region; }

  // Evaluates the rules of the token's policies. Call it after ListAllocations succeeded, which
  // returns 403 only if no namespace allows read-job (hashicorp/nomad:nomad/alloc_endpoint.go List,
  // acl/acl.go AllowNamespaceOperation). UNAVAILABLE and similar codes if Nomad cannot be queried.
  absl::StatusOr<ReadJob> VerifyReadJob(const runtime::Context& context) const;

 private:
  std::shared_ptr<http::HttpTransport> transport_;
  Options options_;
};

}  // namespace nomad_harvester::nomad

#endif  // NOMAD_HARVESTER_NOMAD_CLIENT_H_
