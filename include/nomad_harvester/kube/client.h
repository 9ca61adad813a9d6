// SPDX-License-Identifier: Apache-2.0
// The part of the Kubernetes API that the plugin uses.
#ifndef NOMAD_HARVESTER_KUBE_CLIENT_H_
#define NOMAD_HARVESTER_KUBE_CLIENT_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nomad_harvester/base/json_fields.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/http/transport.h"
#include "nomad_harvester/kube/error.h"
#include "nomad_harvester/kube/object.h"
#include "nomad_harvester/kube/resource_type.h"
#include "nomad_harvester/runtime/context.h"

#include "absl/status/statusor.h"

namespace nomad_harvester::kube {

// Which part of each object a list contains. A server that cannot send metadata alone sends whole
// objects (kubernetes/kubernetes:staging/src/k8s.io/apiserver/pkg/endpoints/handlers/response.go,
// transformObject).
enum class Part { kWhole, kMetadata };

// Selects the objects of a list; empty: all of them.
struct Selector {
  std::string labels{};
  // Compares fields for equality. The server supports only few fields of each resource.
  std::string fields{};
};

enum class Propagation { kBackground, kForeground };
struct DeleteOptions {
  std::string uid{};               // precondition; required: empty is refused before sending
  std::string resource_version{};  // precondition unless empty
  Propagation propagation = Propagation::kForeground;
};

// Thread-safe. Every call blocks until the request, including the transport's retries, is done.
// Errors: those of ToStatus (error.h) and of HttpTransport; INTERNAL for a reply that cannot be
// decoded or is not the requested list; INVALID_ARGUMENT, with nothing sent, for a name or
// namespace that is not a valid path segment. An empty `ns` means a cluster-scoped resource or, for
// List, all namespaces.
class KubeClient {
 public:
  // `transport` adds base URL, credentials and retries.
  explicit KubeClient(std::shared_ptr<http::HttpTransport> transport);

  absl::StatusOr<Observed> Get(const runtime::Context& context, const ResourceType& type,
                               const std::string& ns, const std::string& name) const;

  // Reads the members that `fields` names, while the reply arrives. Each record is then kept as a
  // T. One request; INTERNAL if the reply is only a page.
  template <typename T, typename Record = T>
  absl::StatusOr<Timestamped<std::vector<T>>> List(const runtime::Context& context,
                                                   const ResourceType& type, const std::string& ns,
                                                   const Selector& selector,
                                                   const base::JsonFields<Record>& fields,
                                                   Part part = Part::kWhole) const {
    Timestamped<std::vector<T>> list;
    base::JsonRecords<Record, T> records(fields);
    NH_ASSIGN_OR_RETURN(list.server_time,
                        ReadList(context, type, ns, selector, part, fields.paths(), records));
    list.value = records.TakeAll();
    return list;
  }

  // Sent as idempotent: when a reply was lost, the repeated request returns ALREADY_EXISTS and the
  // caller reads the object back. Refuses unknown fields, and, with nothing sent, an object without
  // metadata.name. A dry run (dryRun=All) passes all admission, stores nothing and counts as a
  // read.
  absl::StatusOr<Observed> Create(const runtime::Context& context, const ResourceType& type,
                                  const std::string& ns, const Json& object,
                                  bool dry_run = false) const;

  // Sends a JSON merge patch. If it contains metadata.resourceVersion, the patch is conditional
  // (FAILED_PRECONDITION, IsConflict) and is repeated after a lost reply. If the first request took
  // effect, the repeated one also returns a conflict: on IsConflict the caller must read the object
  // before it concludes that another client changed it. Without metadata.resourceVersion the patch
  // is sent once. A resourceVersion that is empty or not a string is INVALID_ARGUMENT, with nothing
  // sent.
  absl::StatusOr<Observed> MergePatch(const runtime::Context& context, const ResourceType& type,
                                      const std::string& ns, const std::string& name,
                                      const Json& patch) const;

  // NOT_FOUND is returned as an error; callers decide whether it is as good as deleted. OK means
  // accepted: an object with finalizers still exists. Repeated after a lost reply; as with
  // MergePatch, a conflict on resource_version may be caused by the first attempt of the same
  // delete.
  absl::Status Delete(const runtime::Context& context, const ResourceType& type,
                      const std::string& ns, const std::string& name,
                      const DeleteOptions& options) const;

  // GET /version: the server's description of itself, such as "gitVersion". Every authenticated
  // user may read it
  // (kubernetes/kubernetes:plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go,
  // system:public-info-viewer).
  absl::StatusOr<Observed> ServerVersion(const runtime::Context& context) const;

  // A POST of a review, which stores nothing (access reviews). `path` is already escaped.
  absl::StatusOr<Json> CreateReview(const runtime::Context& context, const std::string& path,
                                    const Json& review) const;

 private:
  // Passes the items to `elements`, and returns the server's time.
  absl::StatusOr<std::optional<base::WallTime>> ReadList(const runtime::Context& context,
                                                         const ResourceType& type,
                                                         const std::string& ns,
                                                         const Selector& selector, Part part,
                                                         const std::vector<std::string>& paths,
                                                         base::JsonElements& elements) const;

  std::shared_ptr<http::HttpTransport> transport_;
};

}  // namespace nomad_harvester::kube

#endif  // NOMAD_HARVESTER_KUBE_CLIENT_H_
