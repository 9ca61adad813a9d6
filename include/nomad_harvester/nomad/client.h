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

// Whether the token has node:write, which drains, eligibility and introduction tokens need.
enum class NodeWrite { kAllowed, kDenied, kUnverified };

struct TokenRights {
  ReadJob read_job = ReadJob::kDenied;
  NodeWrite node_write = NodeWrite::kDenied;
};

// One of the region's servers, as the agent that replies knows it.
struct Server {
  std::string name{};
  std::string version{};  // "1.10.5", "1.9.3+ent"; empty: not told
};
struct Servers {
  std::vector<Server> list{};
  std::optional<base::WallTime> server_time{};  // of the reply
};

// Which client may register, and for how long from now on.
struct Introduction {
  std::string node_name;
  std::string node_pool;  // empty: Nomad's "default"
  base::Duration ttl{};   // > 0; Nomad silently cuts it to its max_identity_ttl
};
struct IntroductionToken {
  base::Secret jwt;
  base::Duration lifetime{};  // as Nomad granted it
};

// What a list of allocations has besides their status. Each is a third to a half of the list.
enum class AllocationPart { kResources, kTaskStates };

// Thread-safe; every call blocks for the request. Region and namespace are sent as query
// parameters. Errors of Nomad have the codes of nomad/error.h and carry a NomadError. An empty list
// without X-Nomad-Index is INTERNAL; one with elements has the index 0 then.
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
  // The first of these nodes, or none, in one small request, with the index of a whole list: as
  // long as both stay, a list that has that node is current. Every write to the table of nodes
  // raises its index (hashicorp/nomad:nomad/state/state_store.go), which a list gives whatever its
  // page (nomad/node_endpoint.go, List); another Nomad at the same address has other nodes.
  absl::StatusOr<Indexed<std::vector<Node>>> FirstNode(const runtime::Context& context) const;
  // GET /v1/node/:id. NOT_FOUND if the node does not exist, as far as the server knows that
  // replied: its index is in NomadError (rule C15).
  absl::StatusOr<Indexed<Node>> GetNode(const runtime::Context& context,
                                        const std::string& id) const;
  // GET /v1/node/:id/allocations.
  absl::StatusOr<Indexed<std::vector<Allocation>>> NodeAllocations(const runtime::Context& context,
                                                                   const std::string& id) const;
  // GET /v1/allocations?namespace=*: all allocations of the region, as stubs. Without task states
  // all_tasks_dead is false, without resources these are 0 (hashicorp/nomad:
  // nomad/alloc_endpoint.go, List; structs.AllocStubFields). PERMISSION_DENIED if the token has
  // read-job in no namespace.
  absl::StatusOr<Indexed<std::vector<Allocation>>> ListAllocations(
      const runtime::Context& context, AllocationPart part, const ReadOptions& options = {}) const;
  // GET /v1/allocation/:id → NodeID. NOT_FOUND: the server has no such allocation, because it is
  // one of another cluster, was collected, or is so new that this server does not have it yet.
  // PERMISSION_DENIED: a 403, or the 500 "Unknown allocation" with which Nomad hides an allocation
  // that it has from a token without read-job in its namespace
  // (hashicorp/nomad:nomad/alloc_endpoint.go, GetAlloc). Rule C7 does not rely on that difference:
  // NOT_FOUND means "of another cluster" only with a token that is proven to have read-job.
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

  // POST /v1/acl/identity/client-introduction-token, which Nomad 1.11 and newer have: a token with
  // which only a client of this name and pool may register, once the servers enforce introduction.
  // It changes nothing in Nomad and may be repeated. UNIMPLEMENTED: this Nomad has no such tokens.
  // The right is node:write; test/e2e/README.md, "Nomad 1.11", has the facts.
  absl::StatusOr<IntroductionToken> Introduce(const runtime::Context& context,
                                              const Introduction& introduction) const;
  // POST /v1/client/metadata: sets these keys of the dynamic metadata of the node's client; no
  // value removes the key. The client keeps them across restarts, and registers again with them
  // within 10 s: only then GetNode and the scheduler see them
  // (hashicorp/nomad:client/meta_endpoint.go, client/client.go watchNodeUpdates). Sent once. The
  // server passes it on to the client: UNAVAILABLE if that is not connected, and a client that
  // hangs does not reply for half a minute (nomad/client_meta_endpoint.go). That it may arrive late
  // is not waited for (http::HttpRequest::late_is_harmless).
  absl::Status SetNodeMeta(const runtime::Context& context, const std::string& id,
                           const std::map<std::string, std::optional<std::string>>& meta) const;

  // The configured region; empty: the region of the agent that replies.
  const std::string& region() const { return options_.region; }

  // Evaluates the rules of the token's policies. Call it after ListAllocations succeeded, which
  // returns 403 only if no namespace allows read-job (hashicorp/nomad:nomad/alloc_endpoint.go List,
  // acl/acl.go AllowNamespaceOperation). UNAVAILABLE and similar codes if Nomad cannot be queried.
  absl::StatusOr<ReadJob> VerifyReadJob(const runtime::Context& context) const;
  // The same for both rights, in the same requests.
  absl::StatusOr<TokenRights> VerifyRights(const runtime::Context& context) const;

  // GET /.well-known/jwks.json: which Nomad cluster this is, as the ids of the keys with which it
  // signs, sorted and separated by commas. A cluster makes these keys itself, one per 30 days; from
  // 1.8.3 on it keeps an old one for 30 days more, before an hour if nothing uses it; each region
  // has its own (hashicorp/nomad:nomad/keyring_endpoint.go, ListPublic; nomad/core_sched.go,
  // rootKeyGC). Nobody needs a right to read them. A restored snapshot brings its keys along.
  // Empty: Nomad before 1.7, which does not have the path, or a proxy that refuses it (3xx, 4xx,
  // a page).
  absl::StatusOr<std::string> ReadClusterKeys(const runtime::Context& context) const;
  // GET /v1/agent/members: the servers of the region. The right is node:read
  // (hashicorp/nomad:nomad/status_endpoint.go, Members).
  absl::StatusOr<Servers> ListServers(const runtime::Context& context) const;
  // GET /v1/node/pool/:name. NOT_FOUND: there is no such pool. PERMISSION_DENIED: the token may not
  // read it, which node rights do not include (hashicorp/nomad:nomad/node_pool_endpoint.go).
  absl::Status CheckNodePool(const runtime::Context& context, const std::string& name) const;

 private:
  std::shared_ptr<http::HttpTransport> transport_;
  Options options_;
};

}  // namespace nomad_harvester::nomad

#endif  // NOMAD_HARVESTER_NOMAD_CLIENT_H_
