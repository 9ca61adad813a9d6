// SPDX-License-Identifier: Apache-2.0
// Checks that a request is well-formed.
#ifndef NOMAD_HARVESTER_SRC_HTTP_REQUEST_CHECK_H_
#define NOMAD_HARVESTER_SRC_HTTP_REQUEST_CHECK_H_

#include "nomad_harvester/http/message.h"

#include "absl/status/status.h"

namespace nomad_harvester::http {

// INVALID_ARGUMENT for a target or header that would break the request line or the framing, or
// inject another header. Messages omit values, which may be secret.
absl::Status CheckRequest(const HttpRequest& request);

}  // namespace nomad_harvester::http

#endif  // NOMAD_HARVESTER_SRC_HTTP_REQUEST_CHECK_H_
