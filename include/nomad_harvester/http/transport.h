// SPDX-License-Identifier: Apache-2.0
// The interface for sending requests. Decorators add retries, limits, tokens and logs.
#ifndef NOMAD_HARVESTER_HTTP_TRANSPORT_H_
#define NOMAD_HARVESTER_HTTP_TRANSPORT_H_

#include "nomad_harvester/base/json_fields.h"
#include "nomad_harvester/http/message.h"
#include "nomad_harvester/runtime/context.h"

#include "absl/status/statusor.h"

namespace nomad_harvester::http {

// Thread-safe. Blocks until the reply is complete.
//
// Any reply of the server, including 4xx and 5xx, is a *response*. An error means that there was no
// reply:
//   CANCELLED, DEADLINE_EXCEEDED  the context's status;
//   UNAVAILABLE                   no connection, connection broken, reply cut short, attempt timed
//                                 out (the request may or may not have taken effect);
//   FAILED_PRECONDITION           the peer's or our certificate was rejected, or a WritePermit
//                                 forbade the write (nothing was sent);
//   RESOURCE_EXHAUSTED            the reply is larger than the cap;
//   INVALID_ARGUMENT              the request itself is malformed.
// Texts never contain credentials.
class HttpTransport {
 public:
  virtual ~HttpTransport() = default;
  virtual absl::StatusOr<HttpResponse> Send(const runtime::Context& context,
                                            const HttpRequest& request) = 0;
};

// Sends `request` and passes the body of a 2xx reply to `list`; the returned `body` is then empty.
// INTERNAL if the reply is not such a list; the message names `address_key`, the key with the
// address of the server.
absl::StatusOr<HttpResponse> SendReading(HttpTransport& transport, const runtime::Context& context,
                                         HttpRequest request, base::JsonListReader& list,
                                         std::string_view address_key);

}  // namespace nomad_harvester::http

#endif  // NOMAD_HARVESTER_HTTP_TRANSPORT_H_
