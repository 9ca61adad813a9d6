// SPDX-License-Identifier: Apache-2.0
// The slice of the Kubernetes API that the plugin needs.
#ifndef NOMAD_HARVESTER_KUBE_CLIENT_H_
#define NOMAD_HARVESTER_KUBE_CLIENT_H_

#include <memory>
#include <string>
#include <vector>

#include "nomad_harvester/http/transport.h"
#include "nomad_harvester/kube/error.h"
#include "nomad_harvester/kube/object.h"
#include "nomad_harvester/kube/resource_type.h"
#include "nomad_harvester/runtime/context.h"

#include "absl/status/statusor.h"

namespace nomad_harvester::kube {

struct ListOptions {
  std::string label_selector;
  std::string field_selector;
  int page_size = 100;
  // Members of each item that are dropped while the reply is read, as dotted paths below the item
  // ("spec.template.spec.volumes"; a path goes through arrays, into each element).
  // "metadata.managedFields" always is.
  std::vector<std::string> drop;
};

struct CreateOptions {
  bool dry_run = false;  // dryRun=All: full admission, nothing stored; counts as a read
  bool strict = true;    // fieldValidation=Strict
};

enum class Propagation { kBackground, kForeground };
struct DeleteOptions {
  std::string uid;               // precondition; never empty: a delete without one is refused here
  std::string resource_version;  // precondition unless empty
  Propagation propagation = Propagation::kForeground;
};

// Thread-safe; every call blocks for the request, retries of the transport included. Errors: the
// table of error.h, HttpTransport's own, INTERNAL for a reply that cannot be decoded, and
// INVALID_ARGUMENT, with nothing sent, for a name or namespace that cannot stand in a path.
// `ns` empty: the resource is cluster-scoped or, for List, all namespaces are meant.
class KubeClient {
 public:
  // The transport stack carries base URL, credentials and retries.
  explicit KubeClient(std::shared_ptr<http::HttpTransport> transport);

  absl::StatusOr<Observed> Get(const runtime::Context& context, const ResourceType& type,
                               const std::string& ns, const std::string& name) const;

  // All pages. A page that answers 410 starts the list anew, at most three times (then
  // OUT_OF_RANGE). A server whose pages do not come to an end is INTERNAL.
  absl::StatusOr<ObservedList> List(const runtime::Context& context, const ResourceType& type,
                                    const std::string& ns, const ListOptions& options) const;

  // A POST of a client-named object is sent as idempotent: after a lost reply its repetition
  // answers ALREADY_EXISTS, and the caller reads the object back. An object without metadata.name
  // (generateName) is sent once.
  absl::StatusOr<Observed> Create(const runtime::Context& context, const ResourceType& type,
                                  const std::string& ns, const Json& object,
                                  const CreateOptions& options = {}) const;

  // A JSON merge patch. With metadata.resourceVersion in it the patch is conditional
  // (FAILED_PRECONDITION, IsConflict) and repeated after a lost reply: if the first one took
  // effect, the repetition answers that very conflict, so that a caller who sees IsConflict must
  // read back before it concludes that somebody else was faster. Without it, it is sent once. One
  // that is there and empty, or no text, is INVALID_ARGUMENT, with nothing sent.
  absl::StatusOr<Observed> MergePatch(const runtime::Context& context, const ResourceType& type,
                                      const std::string& ns, const std::string& name,
                                      const Json& patch) const;

  // NOT_FOUND is an error here: callers decide that gone is as good as deleted. OK means accepted:
  // an object with finalizers is still there. Repeated after a lost reply: as with MergePatch, a
  // conflict on resource_version may be this delete's own first attempt.
  absl::Status Delete(const runtime::Context& context, const ResourceType& type,
                      const std::string& ns, const std::string& name,
                      const DeleteOptions& options) const;

  // A POST that asks and stores nothing (access reviews). `path` is escaped already.
  absl::StatusOr<Json> CreateReview(const runtime::Context& context, const std::string& path,
                                    const Json& review) const;

 private:
  std::shared_ptr<http::HttpTransport> transport_;
};

}  // namespace nomad_harvester::kube

#endif  // NOMAD_HARVESTER_KUBE_CLIENT_H_
