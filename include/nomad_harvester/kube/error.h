// SPDX-License-Identifier: Apache-2.0
// Error responses of the API server as status codes.
#ifndef NOMAD_HARVESTER_KUBE_ERROR_H_
#define NOMAD_HARVESTER_KUBE_ERROR_H_

#include <optional>
#include <string>
#include <string_view>

#include "nomad_harvester/base/time.h"
#include "nomad_harvester/http/message.h"

#include "absl/status/status.h"

namespace nomad_harvester::kube {

// The API server's error, carried as a payload of the status (base::Annotate keeps it).
struct KubeError {
  int http_status = 0;
  std::string reason;   // metav1.Status.reason: "AlreadyExists", "Conflict", "Expired", …
  std::string message;  // valid UTF-8, shortened
  base::Duration retry_after{};
  bool is_status = false;  // the body was a metav1.Status, so it comes from Kubernetes
};
// The server's error behind a status that a KubeClient returned; nullopt if the server did not
// reply.
std::optional<KubeError> GetKubeError(const absl::Status& status);
// 404 with a metav1.Status that names a missing object. An ingress or Rancher also answers 404 for
// an unknown path, and so does the API server while a CRD is missing. Those have the code NOT_FOUND
// but are not IsNotFound: they must not make a VM look deleted.
bool IsNotFound(const absl::Status& status);
bool IsAlreadyExists(const absl::Status& status);  // 409 AlreadyExists
bool IsConflict(const absl::Status& status);       // any other 409, failed preconditions included
bool IsForbidden(const absl::Status& status);      // 403 that is not a quota

// Maps HTTP status, reason and message to a code:
//   3xx FAILED_PRECONDITION (redirects are never followed: the base URL is wrong)
//   400 INVALID_ARGUMENT   401 UNAUTHENTICATED   403 PERMISSION_DENIED (quota: RESOURCE_EXHAUSTED)
//   404 NOT_FOUND          405, 415 UNIMPLEMENTED   408 UNAVAILABLE (proxies)
//   409 AlreadyExists ⇒ ALREADY_EXISTS, else FAILED_PRECONDITION (never ABORTED: the agent takes
//       that code as "busy")
//   410 OUT_OF_RANGE       413 RESOURCE_EXHAUSTED
//   422 INVALID_ARGUMENT   429 UNAVAILABLE   any other 4xx FAILED_PRECONDITION
//   500 INTERNAL, but Harvester's quota refusal ⇒ RESOURCE_EXHAUSTED, a duplicate MAC address or
//       missing NetworkAttachmentDefinition ⇒ FAILED_PRECONDITION (harvester/harvester:
//       pkg/webhook/types/admission.go maps plain Go errors to 500), and reason ServerTimeout ⇒
//       UNAVAILABLE (kubernetes/kubernetes:staging/src/k8s.io/apimachinery/pkg/api/errors/
//       errors.go, NewServerTimeout)
//   501 UNIMPLEMENTED      any other 5xx, above all 502, 503, 504: UNAVAILABLE
//   1xx, 2xx INTERNAL (unexpected here)
// A quota error is recognised by its text: with 403 Kubernetes' "exceeded quota", "insufficient
// quota", "failed quota" or "status unknown for quota"; with 500, 403 or 422 Harvester's
// "insufficient resources".
// The body may be a metav1.Status, Rancher's own JSON or plain text (429, proxies).
absl::Status ToStatus(const http::HttpResponse& response, std::string_view purpose);
// For RetryOptions::permanently_refused: a 500 that is in fact a refusal (quota, MAC address,
// network).
bool IsRefusalSentAs500(const http::HttpResponse& response);

}  // namespace nomad_harvester::kube

#endif  // NOMAD_HARVESTER_KUBE_ERROR_H_
