// SPDX-License-Identifier: Apache-2.0
// Sends one request to Nomad and reads its reply; shared by the methods of the client.
#ifndef NOMAD_HARVESTER_SRC_NOMAD_CALLER_H_
#define NOMAD_HARVESTER_SRC_NOMAD_CALLER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "nomad_harvester/base/encoding.h"
#include "nomad_harvester/http/transport.h"
#include "nomad_harvester/nomad/client.h"
#include "nomad_harvester/runtime/context.h"

#include "absl/status/statusor.h"

namespace nomad_harvester::nomad {

// Returns "/v1/node/" + an escaped ID. INVALID_ARGUMENT for an ID that would change the path: an
// empty one gives the list's path, dots lead to a parent.
absl::StatusOr<std::string> PathOf(std::string_view prefix, std::string_view id,
                                   std::string_view suffix = "");

// Returns X-Nomad-Index; nullopt if it is missing or not a number.
std::optional<std::uint64_t> ReplyIndex(const http::HttpResponse& response);

struct Call {
  std::string path;
  std::string purpose;            // for errors and logs
  std::string_view needs;         // the ACL rule that the error of a 403 names
  base::QueryParameters query{};  // besides region and namespace
};

class Caller {
 public:
  Caller(http::HttpTransport& transport, const runtime::Context& context,
         NomadClient::Options options)
      : transport_(transport), context_(context), options_(std::move(options)) {}

  // Both return a 2xx reply, the transport's error, or ToStatus of any other reply. If `list` is
  // given, it takes the body.
  absl::StatusOr<http::HttpResponse> Get(const Call& call, const ReadOptions& blocking = {},
                                         base::JsonListReader* list = nullptr) const;
  absl::StatusOr<http::HttpResponse> Post(const Call& call, std::string body,
                                          http::Idempotency idempotency,
                                          bool late_is_harmless = false) const;

 private:
  http::HttpRequest Request(const Call& call, base::QueryParameters more) const;

  http::HttpTransport& transport_;
  const runtime::Context& context_;
  const NomadClient::Options options_;
};

}  // namespace nomad_harvester::nomad

#endif  // NOMAD_HARVESTER_SRC_NOMAD_CALLER_H_
