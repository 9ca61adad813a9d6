// SPDX-License-Identifier: Apache-2.0
// The part of the Nomad API that the plugin uses.
#ifndef NOMAD_HARVESTER_NOMAD_CLIENT_H_
#define NOMAD_HARVESTER_NOMAD_CLIENT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nomad_harvester/base/secret.h"
#include "nomad_harvester/http/transport.h"
#include "nomad_harvester/nomad/types.h"
#include "nomad_harvester/runtime/context.h"

#include "absl/status/statusor.h"

namespace nomad_harvester::nomad {

struct ReadOptions {
  // A blocking query: returns when something has changed after `index` or `wait` has expired. With
  // index 0 or wait 0 it does not block. It may return without a change.
  std::uint64_t index = 0;
  base::Duration wait{};
};

// Says whether the token has read-job. (GetAllocs in hashicorp/nomad:nomad/node_endpoint.go
// silently omits the allocations of namespaces in which the token lacks read-job.)
enum class ReadJob {
  kEverywhere,  // ACLs are off, a management token, or read-job for every namespace
  kDenied,      // the token's policies do not grant it
  kUnverified,  // the policies could not be read
};

// Says whether the token has node:write, needed for drains, eligibility and introduction tokens.
enum class NodeWrite { kAllowed, kDenied, kUnverified };

struct TokenRights {
  ReadJob read_job = ReadJob::kDenied;
  bool list_jobs = false;  // list-jobs for every namespace; false, too, if that is not verified
  NodeWrite node_write = NodeWrite::kDenied;
};

// One of the region's servers, as known to the agent that replies.
struct Server {
  std::string name{};
  std::string version{};  // "1.10.5", "1.9.3+ent"; empty: unknown
};
struct Servers {
  std::string region{};  // theirs
  std::vector<Server> list{};
  std::optional<base::WallTime> server_time{};  // of the reply
};

// The client that may register, and how long from now.
struct Introduction {
  std::string node_name;
  std::string node_pool;  // empty: Nomad's "default"
  base::Duration ttl{};   // > 0; Nomad silently cuts it to its max_identity_ttl
};
struct IntroductionToken {
  base::Secret jwt;
  base::Duration lifetime{};  // the lifetime that Nomad granted
};

// The part of allocations that a list contains besides their status. Each part is a third to a half
// of the list.
enum class AllocationPart { kResources, kTaskStates };

// Thread-safe; every call blocks for the request. Region and namespace are sent as query
// parameters. Errors of Nomad have the codes of nomad/error.h and carry a NomadError. A list
// without X-Nomad-Index is INTERNAL if it is empty, and otherwise has the index 0.
class NomadClient {
 public:
  struct Options {
    std::string region{};  // empty: the agent's own
    std::string ns{};
  };
  NomadClient(std::shared_ptr<http::HttpTransport> transport, Options options);

  // GET /v1/nodes?resources=true: stubs of all nodes.
  absl::StatusOr<Indexed<std::vector<Node>>> ListNodes(const runtime::Context& context,
                                                       const ReadOptions& options = {}) const;
  // Reads the first of these nodes, or none, in one small request, with the index of a whole list.
  // While node and index stay the same, a list that was read before is current: every write to the
  // table of nodes raises its index (hashicorp/nomad:nomad/state/state_store.go), each page of a
  // list has that index (nomad/node_endpoint.go, List), and another Nomad at the same address has
  // other nodes.
  absl::StatusOr<Indexed<std::vector<Node>>> FirstNode(const runtime::Context& context) const;
  // GET /v1/node/:id. NOT_FOUND: the server that replied does not know the node. The index of that
  // server is in NomadError (rule C15).
  absl::StatusOr<Indexed<Node>> GetNode(const runtime::Context& context,
                                        const std::string& id) const;
  // GET /v1/node/:id/allocations.
  absl::StatusOr<Indexed<std::vector<Allocation>>> NodeAllocations(const runtime::Context& context,
                                                                   const std::string& id) const;
  // GET /v1/allocations?namespace=*: all allocations of the region, as stubs. Without task states,
  // all_tasks_dead is false; without resources, cpu_shares and memory_mb are 0
  // (hashicorp/nomad:nomad/alloc_endpoint.go, List; structs.AllocStubFields). PERMISSION_DENIED if
  // the token has read-job in no namespace.
  absl::StatusOr<Indexed<std::vector<Allocation>>> ListAllocations(
      const runtime::Context& context, AllocationPart part, const ReadOptions& options = {}) const;
  // The calls below are those of the demand. Read blocked evaluations, then jobs, then placements:
  // what Nomad places in between is then counted twice at most, and never lost.
  //
  // GET /v1/allocations?namespace=*: what the allocations hold that are not terminal by their
  // client status, those that Nomad stops included: these count when Nomad looks for room
  // (hashicorp/nomad:nomad/structs/funcs.go, AllocsFit). PERMISSION_DENIED as above.
  absl::StatusOr<Indexed<std::vector<Placement>>> ListPlacements(
      const runtime::Context& context) const;
  // GET /v1/evaluations?status=blocked&namespace=*: those of service and batch jobs. Nomad hides
  // the others if the token has read-job in some namespaces only; PERMISSION_DENIED: in none.
  absl::StatusOr<Indexed<std::vector<BlockedEvaluation>>> ListBlockedEvaluations(
      const runtime::Context& context) const {
    return ListEvaluations(context, "blocked");
  }
  // Likewise with status=pending: those that Nomad's schedulers have not finished.
  absl::StatusOr<Indexed<std::vector<BlockedEvaluation>>> ListPendingEvaluations(
      const runtime::Context& context) const {
    return ListEvaluations(context, "pending");
  }
  // GET /v1/jobs?namespace=*, without dead jobs; hides as above. Needs list-jobs, which read-job
  // does not imply (hashicorp/nomad:nomad/job_endpoint.go, List).
  absl::StatusOr<Indexed<std::vector<JobStub>>> ListJobs(const runtime::Context& context) const;
  // GET /v1/job/:id. Callers may keep it while JobModifyIndex is the same. NOT_FOUND: there is
  // none.
  absl::StatusOr<Job> GetJob(const runtime::Context& context, const std::string& ns,
                             const std::string& id) const;

  // GET /v1/allocation/:id → NodeID. NOT_FOUND: the server does not have the allocation, because it
  // is in another cluster, was collected, or is too new. PERMISSION_DENIED: a 403, or the 500
  // "Unknown allocation" with which Nomad hides an existing allocation from a token without
  // read-job in its namespace (hashicorp/nomad:nomad/alloc_endpoint.go, GetAlloc). Rule C7 does not
  // rely on that difference: NOT_FOUND means "in another cluster" only if the token is proven to
  // have read-job.
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

  // POST /v1/acl/identity/client-introduction-token, in Nomad 1.11 and newer: makes a token with
  // which only a client with this name and pool may register, once the servers enforce
  // introduction. It changes nothing in Nomad and may be repeated. UNIMPLEMENTED: this Nomad has no
  // such tokens. Needs node:write. The facts are in test/e2e/README.md, "Nomad 1.11".
  absl::StatusOr<IntroductionToken> Introduce(const runtime::Context& context,
                                              const Introduction& introduction) const;
  // POST /v1/client/metadata: sets these keys of the dynamic metadata of the node's client; nullopt
  // removes a key. The client keeps them across restarts and registers again with them within 10 s;
  // only then do GetNode and the scheduler see them (hashicorp/nomad:client/meta_endpoint.go,
  // client/client.go watchNodeUpdates). Sent once. The server forwards the request to the client.
  // UNAVAILABLE: the client is not connected. A client that hangs delays the reply by half a minute
  // (nomad/client_meta_endpoint.go). Write permits are not told that the request may take effect
  // late (http::HttpRequest::late_is_harmless).
  absl::Status SetNodeMeta(const runtime::Context& context, const std::string& id,
                           const std::map<std::string, std::optional<std::string>>& meta) const;

  // The configured region; empty: the region of the agent that replies.
  const std::string& region() const { return options_.region; }

  // Evaluates the rules of the token's policies. Call it after ListAllocations succeeded, which
  // alone proves nothing: it returns 403 only if no namespace allows read-job
  // (hashicorp/nomad:nomad/alloc_endpoint.go List, acl/acl.go AllowNamespaceOperation). UNAVAILABLE
  // and similar codes if Nomad cannot be queried.
  absl::StatusOr<ReadJob> VerifyReadJob(const runtime::Context& context) const;
  // Likewise for all rights, in the same requests.
  absl::StatusOr<TokenRights> VerifyRights(const runtime::Context& context) const;

  // GET /.well-known/jwks.json: returns the ids of the keys with which this Nomad cluster signs,
  // sorted and comma-separated. They identify the cluster: it makes its keys itself, one per 30
  // days, and each region has its own. Nomad 1.8.3 and newer keep an old key for 30 more days,
  // older releases for an hour if nothing uses it (hashicorp/nomad:nomad/keyring_endpoint.go,
  // ListPublic; nomad/core_sched.go, rootKeyGC). Reading them needs no right. A restored snapshot
  // includes its keys. Empty: Nomad before 1.7, which lacks the path, or a proxy that refuses it
  // (3xx, 4xx, a page).
  absl::StatusOr<std::string> ReadClusterKeys(const runtime::Context& context) const;
  // GET /v1/agent/members: the servers of the region. Needs node:read
  // (hashicorp/nomad:nomad/status_endpoint.go, Members).
  absl::StatusOr<Servers> ListServers(const runtime::Context& context) const;
  // GET /v1/node/pool/:name. NOT_FOUND: there is no such pool. PERMISSION_DENIED: the token lacks
  // the right to read it; node rights do not include that
  // (hashicorp/nomad:nomad/node_pool_endpoint.go).
  absl::Status CheckNodePool(const runtime::Context& context, const std::string& name) const;

 private:
  // Of service and batch jobs.
  absl::StatusOr<Indexed<std::vector<BlockedEvaluation>>> ListEvaluations(
      const runtime::Context& context, const std::string& status) const;

  std::shared_ptr<http::HttpTransport> transport_;
  Options options_;
};

}  // namespace nomad_harvester::nomad

#endif  // NOMAD_HARVESTER_NOMAD_CLIENT_H_
