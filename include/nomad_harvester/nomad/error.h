// SPDX-License-Identifier: Apache-2.0
// Maps Nomad's error responses to status codes.
#ifndef NOMAD_HARVESTER_NOMAD_ERROR_H_
#define NOMAD_HARVESTER_NOMAD_ERROR_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "nomad_harvester/http/message.h"

#include "absl/status/status.h"

namespace nomad_harvester::nomad {

// Nomad's error, carried as a payload of the status (base::Annotate keeps it).
struct NomadError {
  int http_status = 0;
  std::string text;  // the body as one line of valid UTF-8, shortened
  // X-Nomad-Index, 0 if the reply has none. Like a list of nodes, a 404 for a node carries the
  // index of the last change of any node (hashicorp/nomad:nomad/node_endpoint.go, GetNode). If it
  // is lower than an earlier list's, the reply comes from another, a restored or a stale server. A
  // proxy's 404 has no index.
  std::uint64_t index = 0;
};
// Returns Nomad's error behind a status that a NomadClient returned; nullopt if Nomad did not
// reply.
std::optional<NomadError> GetNomadError(const absl::Status& status);

// HTTP → code: OK for 2xx; by the table kErrors of error.cc; other 5xx INTERNAL, redirects and
// other 4xx FAILED_PRECONDITION. The table also says whether Nomad refuses the request (IsRefused).
// Bodies are plain text; the message is "<purpose>: <text> (HTTP nnn)", one line. `needs`: the ACL
// rule that a PERMISSION_DENIED names.
absl::Status ToStatus(const http::HttpResponse& response, std::string_view purpose,
                      std::string_view needs = "");

// True if Nomad refused the request, so that repeating it will hardly help (rules L1 to L4). An
// error without a reply is not a refusal. Since Nomad 1.5, a request with an expired or unknown
// token is also answered "Permission denied" (hashicorp/nomad:nomad/node_endpoint.go,
// ErrPermissionDenied wherever Authenticate fails), so callers must act only on refusals that last.
bool IsRefused(const absl::Status& status);

// For http::RetryOptions::permanently_refused: true for a 500 that a retry cannot change, because
// Nomad refuses the request or the node has changed.
bool IsPermanentRefusal(const http::HttpResponse& response);

}  // namespace nomad_harvester::nomad

#endif  // NOMAD_HARVESTER_NOMAD_ERROR_H_
