// SPDX-License-Identifier: Apache-2.0
// One request to the API server; error responses become statuses.
#ifndef NOMAD_HARVESTER_SRC_KUBE_EXCHANGE_H_
#define NOMAD_HARVESTER_SRC_KUBE_EXCHANGE_H_

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/http/transport.h"
#include "nomad_harvester/kube/error.h"

namespace nomad_harvester::kube {

// Returns a 2xx reply, the transport's error, or ToStatus of any other reply.
inline absl::StatusOr<http::HttpResponse> Exchange(http::HttpTransport& transport,
                                                   const runtime::Context& context,
                                                   http::HttpRequest request) {
  request.headers.Set("Accept", "application/json");
  absl::StatusOr<http::HttpResponse> response = transport.Send(context, request);
  if (!response.ok()) return response;
  if (response->status < 200 || response->status > 299) {
    return ToStatus(*response, request.purpose, request.method);
  }
  return response;
}

}  // namespace nomad_harvester::kube

#endif  // NOMAD_HARVESTER_SRC_KUBE_EXCHANGE_H_
