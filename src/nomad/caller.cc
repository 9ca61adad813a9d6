// SPDX-License-Identifier: Apache-2.0
#include "caller.h"

#include <algorithm>
#include <utility>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/nomad/error.h"

#include "absl/strings/numbers.h"

namespace nomad_harvester::nomad {
absl::StatusOr<std::string> PathOf(std::string_view prefix, std::string_view id,
                                   std::string_view suffix) {
  if (id.empty()) return base::InvalidArgument("the Nomad ID is empty");
  if (id == "." || id == "..") return base::InvalidArgument("a path is not a Nomad ID");
  return std::string(prefix) + base::UrlEscape(id) + std::string(suffix);
}

std::optional<std::uint64_t> ReplyIndex(const http::HttpResponse& response) {
  std::uint64_t index = 0;
  const std::string text = response.headers.Find("X-Nomad-Index").value_or("");
  return absl::SimpleAtoi(text, &index) ? std::optional(index) : std::nullopt;
}

absl::StatusOr<http::HttpResponse> Caller::Get(const Call& call, const ReadOptions& blocking,
                                               base::JsonListReader* list) const {
  base::QueryParameters more;
  // Blocking needs both (hashicorp/nomad:nomad/rpc.go, blockingRPC).
  const bool blocks = blocking.index > 0 && blocking.wait > base::Duration::zero();
  if (blocks) {
    // Whole milliseconds, as Nomad's own client prints them (hashicorp/nomad:api/api.go,
    // durToMsec), and at least one, since 0 means the server's default of five minutes.
    const auto wait = std::chrono::duration_cast<std::chrono::milliseconds>(blocking.wait).count();
    more = {{"index", std::to_string(blocking.index)},
            {"wait", std::to_string(std::max<std::int64_t>(1, wait)) + "ms"}};
  }
  http::HttpRequest request = Request(call, std::move(more));
  // The server adds up to a sixteenth of jitter (hashicorp/nomad:nomad/rpc.go, blockingRPC).
  if (blocks) request.server_wait = blocking.wait + blocking.wait / 16;
  NH_ASSIGN_OR_RETURN(http::HttpResponse response,
                      list == nullptr ? transport_.Send(context_, request)
                                      : http::SendReading(transport_, context_, std::move(request),
                                                          *list, "nomad_address"));
  NH_RETURN_IF_ERROR(ToStatus(response, call.purpose, call.needs));
  return response;
}

absl::StatusOr<http::HttpResponse> Caller::Post(const Call& call, std::string body,
                                                http::Idempotency idempotency,
                                                bool late_is_harmless) const {
  http::HttpRequest request = Request(call, {});
  request.method = http::Method::kPost;
  request.effect = http::Effect::kWrite;
  request.idempotency = idempotency;
  request.late_is_harmless = late_is_harmless;
  if (!body.empty()) request.headers.Set("Content-Type", "application/json");
  request.body = std::move(body);
  NH_ASSIGN_OR_RETURN(http::HttpResponse response, transport_.Send(context_, request));
  NH_RETURN_IF_ERROR(ToStatus(response, call.purpose, call.needs));
  return response;
}

http::HttpRequest Caller::Request(const Call& call, base::QueryParameters more) const {
  base::QueryParameters query = {{"region", options_.region}, {"namespace", options_.ns}};
  query.insert(query.end(), call.query.begin(), call.query.end());
  query.insert(query.end(), more.begin(), more.end());
  http::HttpRequest request;
  request.target = call.path + base::QueryString(query);
  request.purpose = call.purpose;
  return request;
}

}  // namespace nomad_harvester::nomad
