// The slice of the Kubernetes API that the plugin needs.
#ifndef NOMAD_HARVESTER_KUBE_CLIENT_H_
#define NOMAD_HARVESTER_KUBE_CLIENT_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json_fwd.hpp"
#include "nomad_harvester/base/time.h"
#include "nomad_harvester/http/transport.h"
#include "nomad_harvester/runtime/context.h"

namespace nomad_harvester::kube {

using Json = nlohmann::json;

// A resource as it stands in a path: "/apis/<group>/<version>/…/<plural>", "/api/v1/…" for the core
// group (group "").
struct ResourceType {
  std::string group;
  std::string version;
  std::string plural;
  std::string kind;  // for error texts
};

extern const ResourceType kVirtualMachines;           // kubevirt.io/v1
extern const ResourceType kVirtualMachineInstances;   // kubevirt.io/v1
extern const ResourceType kVirtualMachineImages;      // harvesterhci.io/v1beta1
extern const ResourceType kKeyPairs;                  // harvesterhci.io/v1beta1
extern const ResourceType kSettings;                  // harvesterhci.io/v1beta1, cluster-scoped
extern const ResourceType kNetworkAttachments;        // k8s.cni.cncf.io/v1
extern const ResourceType kSecrets;                   // v1
extern const ResourceType kPersistentVolumeClaims;    // v1
extern const ResourceType kResourceQuotas;            // v1
extern const ResourceType kNamespaces;                // v1, cluster-scoped
extern const ResourceType kLeases;                    // coordination.k8s.io/v1
extern const ResourceType kStorageClasses;            // storage.k8s.io/v1, cluster-scoped

// An object and the API server's clock at that moment (its Date header): the "now" of every
// decision about the object. Nothing if the reply had no readable date.
struct Observed {
  Json object;
  std::optional<base::WallTime> server_time;
};

struct ObservedList {
  std::vector<Json> items;
  std::string resource_version;
  std::optional<base::WallTime> server_time;
  int requests = 0;  // pages that it took
};

struct ListOptions {
  std::string label_selector;
  std::string field_selector;
  int page_size = 100;
  // Members of each item that are dropped while the reply is read, as dotted paths below the item:
  // "metadata.managedFields" always is.
  std::vector<std::string> drop;
};

struct CreateOptions {
  bool dry_run = false;          // dryRun=All: full admission, nothing stored; counts as a read
  bool strict = true;            // fieldValidation=Strict
};

enum class Propagation { kBackground, kForeground };
struct DeleteOptions {
  std::string uid;               // precondition; never empty: a delete without one is refused here
  std::string resource_version;  // precondition unless empty
  Propagation propagation = Propagation::kForeground;
};

// Kubernetes' own refusal, carried as a payload of the status.
struct KubeError {
  int http_status = 0;
  std::string reason;   // metav1.Status.reason: "AlreadyExists", "Conflict", "Expired", …
  std::string message;
  base::Duration retry_after{};
};
// The refusal behind a status that a KubeClient returned; nothing if the server did not answer.
std::optional<KubeError> GetKubeError(const absl::Status& status);
bool IsNotFound(const absl::Status& status);        // 404
bool IsAlreadyExists(const absl::Status& status);   // 409 AlreadyExists
bool IsConflict(const absl::Status& status);        // 409 otherwise, or a failed precondition
bool IsForbidden(const absl::Status& status);       // 403 that is no quota
bool IsQuota(const absl::Status& status);           // Kubernetes' or Harvester's quota refusal

// The table HTTP status + reason + message → code:
//   400 INVALID_ARGUMENT   401 UNAUTHENTICATED   403 PERMISSION_DENIED (quota: RESOURCE_EXHAUSTED)
//   404 NOT_FOUND          405, 415 UNIMPLEMENTED
//   409 AlreadyExists ⇒ ALREADY_EXISTS, else FAILED_PRECONDITION (never ABORTED: that code tells
//       the agent "busy")
//   410 OUT_OF_RANGE       413 RESOURCE_EXHAUSTED
//   422 INVALID_ARGUMENT   429 UNAVAILABLE
//   500 INTERNAL, but Harvester's quota refusal ⇒ RESOURCE_EXHAUSTED and a duplicate MAC address or
//       missing NetworkAttachmentDefinition ⇒ FAILED_PRECONDITION (harvester/harvester:
//       pkg/webhook/types/admission.go maps plain Go errors to 500)
//   502, 503, 504 UNAVAILABLE
// The body may be a metav1.Status, Rancher's own JSON or plain text (429, proxies).
absl::Status ToStatus(const http::HttpResponse& response, std::string_view purpose);
// For RetryOptions::refused_for_good: such a 500 is final.
bool IsRefusalInDisguise(const http::HttpResponse& response);

// Thread-safe; every call blocks for the request, retries of the transport included. Errors: the
// table above, HttpTransport's own, INTERNAL for a reply that cannot be decoded.
class KubeClient {
 public:
  // The transport stack carries base URL, credentials and retries.
  explicit KubeClient(std::shared_ptr<http::HttpTransport> transport);

  absl::StatusOr<Observed> Get(const runtime::Context& context, const ResourceType& type,
                               const std::string& ns, const std::string& name) const;

  // All pages. A page that answers 410 starts the list anew, at most three times.
  absl::StatusOr<ObservedList> List(const runtime::Context& context, const ResourceType& type,
                                    const std::string& ns, const ListOptions& options) const;

  // `ns` empty: cluster-scoped. A POST of a client-named object is sent as idempotent: after a lost
  // reply its repetition answers ALREADY_EXISTS, and the caller reads the object back.
  absl::StatusOr<Observed> Create(const runtime::Context& context, const ResourceType& type,
                                  const std::string& ns, const Json& object,
                                  const CreateOptions& options = {}) const;

  // A JSON merge patch. With metadata.resourceVersion in it the patch is conditional
  // (FAILED_PRECONDITION, IsConflict) and repeated after a lost reply; without, it is sent once.
  absl::StatusOr<Observed> MergePatch(const runtime::Context& context, const ResourceType& type,
                                      const std::string& ns, const std::string& name,
                                      const Json& patch) const;

  // NOT_FOUND is an error here: callers decide that gone is as good as deleted.
  absl::Status Delete(const runtime::Context& context, const ResourceType& type,
                      const std::string& ns, const std::string& name,
                      const DeleteOptions& options) const;

  // A POST that asks and stores nothing (access reviews).
  absl::StatusOr<Json> Ask(const runtime::Context& context, const std::string& path,
                           const Json& question) const;

 private:
  std::shared_ptr<http::HttpTransport> transport_;
};

// metadata's members, by name.
std::string NameOf(const Json& object);
std::string UidOf(const Json& object);
std::string ResourceVersionOf(const Json& object);

}  // namespace nomad_harvester::kube

#endif  // NOMAD_HARVESTER_KUBE_CLIENT_H_
