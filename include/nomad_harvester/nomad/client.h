// SPDX-License-Identifier: Apache-2.0
// The slice of the Nomad API that the plugin needs.
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
  // A blocking query: returns when something after `index` changed or `wait` is over. index 0 or
  // wait 0 never blocks. Wake-ups may be spurious.
  std::uint64_t index = 0;
  base::Duration wait{};
};

// What the token may see (hashicorp/nomad:nomad/node_endpoint.go GetAllocs leaves out allocations
// of namespaces that the token cannot read-job, silently).
enum class ReadJob {
  kEverywhere,  // ACLs are off, a management token, or read-job for every namespace
  kDenied,      // the token's policies do not say so
  kUnverified,  // the policies could not be read
};

// HTTP → code: 400 INVALID_ARGUMENT; 401 UNAUTHENTICATED; 403 PERMISSION_DENIED; 404, and a 500
// that says "node not found" (writes answer so), NOT_FOUND; 405 UNIMPLEMENTED; 429 UNAVAILABLE; 500
// "can not set node's scheduling eligibility to eligible while it is draining"
// FAILED_PRECONDITION; 500 "invalid scheduling eligibility" INVALID_ARGUMENT; 500 "ACL token
// expired" PERMISSION_DENIED; 500 "No cluster leader", "Not ready to serve consistent reads" or "No
// path to region" UNAVAILABLE; other 500 and 5xx INTERNAL; 408 and 502-504 UNAVAILABLE; redirects
// and other 4xx FAILED_PRECONDITION. Bodies are plain text; the message is "<purpose>: <text> (HTTP
// nnn)", one line. OK for 2xx.
absl::Status ToStatus(const http::HttpResponse& response, std::string_view purpose);

// A 500 that no repetition changes ("node not found", a drain that still runs, …): for
// http::RetryOptions::permanently_refused.
bool IsPermanentRefusal(const http::HttpResponse& response);

// Thread-safe; every call blocks for the request. Region and namespace travel as query parameters.
class NomadClient {
 public:
  struct Options {
    std::string region{};  // empty: the agent's own
    std::string ns{};
  };
  NomadClient(std::shared_ptr<http::HttpTransport> transport, Options options);

  // GET /v1/nodes?resources=true: all nodes, in pages. Stubs.
  absl::StatusOr<Indexed<std::vector<Node>>> ListNodes(const runtime::Context& context,
                                                       const ReadOptions& options = {}) const;
  // GET /v1/node/:id. NOT_FOUND if it is gone.
  absl::StatusOr<Indexed<Node>> GetNode(const runtime::Context& context, const std::string& id,
                                        const ReadOptions& options = {}) const;
  // GET /v1/node/:id/allocations.
  absl::StatusOr<Indexed<std::vector<Allocation>>> NodeAllocations(
      const runtime::Context& context, const std::string& id,
      const ReadOptions& options = {}) const;
  // GET /v1/allocations?namespace=*: all of the region's, as stubs with task states.
  // PERMISSION_DENIED is the sign of a token without read-job.
  absl::StatusOr<Indexed<std::vector<Allocation>>> ListAllocations(
      const runtime::Context& context, const ReadOptions& options = {}) const;
  // GET /v1/allocation/:id → NodeID.
  absl::StatusOr<std::string> NodeOfAllocation(const runtime::Context& context,
                                               const std::string& allocation_id) const;

  // POST /v1/node/:id/drain. Sent once: a repeated POST would restart the deadline. The caller
  // reads the node after an unknown outcome.
  absl::Status Drain(const runtime::Context& context, const std::string& id,
                     const DrainSpec& spec) const;
  // The same endpoint with a null spec and MarkEligible: undoes a running drain. Idempotent.
  absl::Status CancelDrain(const runtime::Context& context, const std::string& id,
                           bool mark_eligible) const;
  // POST /v1/node/:id/eligibility. FAILED_PRECONDITION while a drain runs. Idempotent.
  absl::Status SetEligible(const runtime::Context& context, const std::string& id,
                           bool eligible) const;
  // POST /v1/node/:id/purge; NOT_FOUND if it is gone already. Idempotent.
  absl::Status Purge(const runtime::Context& context, const std::string& id) const;

  // The configured region; empty: the region of the agent that answers.
  const std::string& region() const { return options_.region; }

  // By the rules of the token's own policies, for a caller that ListAllocations answered: it is 403
  // only if no namespace at all allows read-job (hashicorp/nomad:nomad/alloc_endpoint.go List,
  // acl/acl.go AllowNamespaceOperation). UNAVAILABLE and the like if Nomad cannot be asked.
  absl::StatusOr<ReadJob> VerifyReadJob(const runtime::Context& context) const;

 private:
  std::shared_ptr<http::HttpTransport> transport_;
  Options options_;
};

}  // namespace nomad_harvester::nomad

#endif  // NOMAD_HARVESTER_NOMAD_CLIENT_H_
