// SPDX-License-Identifier: Apache-2.0
// One way to send a request; behaviour is a stack of decorators around it.
#ifndef NOMAD_HARVESTER_HTTP_TRANSPORT_H_
#define NOMAD_HARVESTER_HTTP_TRANSPORT_H_

#include "nomad_harvester/http/message.h"
#include "nomad_harvester/runtime/context.h"

#include "absl/status/statusor.h"

namespace nomad_harvester::http {

// Thread-safe. Blocks until the reply is complete.
//
// Any reply of the server, 4xx and 5xx included, is a *response*. An error means that there was
// none:
//   CANCELLED, DEADLINE_EXCEEDED  the context's own;
//   UNAVAILABLE                   no connection, connection broken, reply cut short, attempt timed
//                                 out (the request may or may not have taken effect);
//   FAILED_PRECONDITION           TLS refused the peer or ours was refused, or a WritePermit said
//                                 no (nothing was sent);
//   RESOURCE_EXHAUSTED            the reply is larger than the cap;
//   INVALID_ARGUMENT              the request itself is malformed.
// Texts never hold credentials.
class HttpTransport {
 public:
  virtual ~HttpTransport() = default;
  virtual absl::StatusOr<HttpResponse> Send(const runtime::Context& context,
                                            const HttpRequest& request) = 0;
};

}  // namespace nomad_harvester::http

#endif  // NOMAD_HARVESTER_HTTP_TRANSPORT_H_
