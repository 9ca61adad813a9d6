// SPDX-License-Identifier: Apache-2.0
// Maps the API server's error responses to status codes.
#ifndef NOMAD_HARVESTER_KUBE_ERROR_H_
#define NOMAD_HARVESTER_KUBE_ERROR_H_

#include <optional>
#include <string>
#include <string_view>

#include "nomad_harvester/http/message.h"

#include "absl/status/status.h"

namespace nomad_harvester::kube {

// The API server's error, carried as a payload of the status (base::Annotate keeps it).
struct KubeError {
  int http_status = 0;
  std::string reason;      // metav1.Status.reason: "AlreadyExists", "Conflict", "Expired", …
  std::string message;     // valid UTF-8, shortened
  bool is_status = false;  // the body was a metav1.Status, so it comes from Kubernetes
  bool creating = false;   // the request was a POST: a 404 concerns its namespace
};
// Returns the server's error behind a status that a KubeClient returned; nullopt if the server did
// not reply.
std::optional<KubeError> GetKubeError(const absl::Status& status);
// True for a 404 with a metav1.Status that names a missing object. An ingress or Rancher also
// answers 404 for an unknown path, and so does the API server while a CRD is missing. These have
// the code NOT_FOUND but are not IsNotFound, because they must not make a VM look deleted.
bool IsNotFound(const absl::Status& status);
bool IsAlreadyExists(const absl::Status& status);  // 409 AlreadyExists
// True for any other 409, including failed preconditions. A webhook's denial with that status is
// not a conflict but a refusal: reading the object again does not change it.
bool IsConflict(const absl::Status& status);
bool IsForbidden(const absl::Status& status);  // 403 that is not a quota

// True if the server refused the request, so that repeating it will hardly help (rules L1 to L4).
// Any other error is transient, or says that something has changed. An error without a reply from
// the server is not a refusal. The first matching row decides:
//   "failed calling webhook"  no, whatever the status: a webhook, or one that a denying webhook
//       depends on, is down, for example during Harvester's upgrade
//   `admission webhook "…" denied the request`  yes, whatever the status: the webhook chooses it
//   500 that ToStatus recognises as quota, MAC address or network  yes: only Harvester writes these
//       texts
//   200  made by WithoutEffect: yes
//   404  of a create, if IsNotFound: yes, the namespace does not exist; else no
//   anything else  as the table kCodes of error.cc says
bool IsRefused(const absl::Status& status);

// Maps HTTP status, reason and message to a code: by the table kCodes of error.cc, except for
//   a quota  RESOURCE_EXHAUSTED: with 403 Kubernetes' "exceeded quota", "insufficient quota",
//       "failed quota" or "status unknown for quota"; with 500, 403 or 422 Harvester's
//       "insufficient resources"
//   500  a duplicate MAC address or missing NetworkAttachmentDefinition: FAILED_PRECONDITION
//       (harvester/harvester:pkg/webhook/types/admission.go maps plain Go errors to 500); reason
//       ServerTimeout: UNAVAILABLE
//   409  reason AlreadyExists: ALREADY_EXISTS
// The body may be a metav1.Status, Rancher's own JSON or plain text (429, proxies). `method` is
// that of the request.
absl::Status ToStatus(const http::HttpResponse& response, std::string_view purpose,
                      http::Method method = http::Method::kGet);
// The status of a write that was accepted although a later read shows no change, as when a webhook
// undoes it. It is a refusal (rule L2).
absl::Status WithoutEffect(const std::string& purpose);
// True if the server refused a create because the namespace is being terminated.
bool IsOfEndingNamespace(const absl::Status& status);
// True for a 403 that a right may end: neither a denial by an admission webhook or policy, nor
// IsOfEndingNamespace.
bool MayLackRight(const absl::Status& status);
// For RetryOptions::permanently_refused: true for replies that IsRefused counts as refusals. Among
// the replies that would be retried, these are a webhook's denial, quota, MAC address and network.
bool IsPermanentRefusal(const http::HttpResponse& response);

}  // namespace nomad_harvester::kube

#endif  // NOMAD_HARVESTER_KUBE_ERROR_H_
