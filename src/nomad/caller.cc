// SPDX-License-Identifier: Apache-2.0
#include "caller.h"

#include <algorithm>
#include <utility>

#include "nomad_harvester/base/encoding.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/nomad/error.h"

#include "absl/strings/cord.h"
#include "reply_index.h"

namespace nomad_harvester::nomad {
namespace {

// The wait in whole milliseconds, as Nomad's own client prints it (hashicorp/nomad:api/api.go,
// durToMsec). A shorter wait becomes 1 ms, since 0 means the server's default of five minutes.
std::string FormatWait(base::Duration wait) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(wait).count();
  return std::to_string(std::max<std::int64_t>(1, ms)) + "ms";
}

absl::Status Refusal(const http::HttpResponse& response, const CallerText& text) {
  absl::Status status = ToStatus(response, text.purpose);
  if (status.code() != absl::StatusCode::kPermissionDenied || text.needs.empty()) return status;
  absl::Status denial = base::MakeStatus(
      status.code(), base::Message(status) + "; the Nomad token needs " + std::string(text.needs));
  status.ForEachPayload([&denial](absl::string_view url, const absl::Cord& payload) {
    denial.SetPayload(url, payload);
  });
  return denial;
}

}  // namespace

absl::StatusOr<std::string> PathOf(std::string_view prefix, std::string_view id,
                                   std::string_view suffix) {
  if (id.empty()) return base::InvalidArgument("the Nomad ID is empty");
  if (id == "." || id == "..") return base::InvalidArgument("a path is not a Nomad ID");
  return std::string(prefix) + base::UrlEscape(id) + std::string(suffix);
}

Target::Target(std::string path, const NomadClient::Options& options, std::string_view ns)
    : text_(std::move(path)) {
  if (!options.region.empty()) Add("region", options.region);
  if (!ns.empty()) Add("namespace", ns);
}

Target& Target::Add(std::string_view key, std::string_view value) {
  text_ += has_query_ ? '&' : '?';
  has_query_ = true;
  text_.append(key).append("=");
  // The namespace wildcard "*" is not escaped: a query may contain it (RFC 3986 3.4).
  text_ += value == "*" ? "*" : base::UrlEscape(value);
  return *this;
}

Target& Target::Add(const ReadOptions& options) {
  if (IsBlocking(options)) {
    Add("index", std::to_string(options.index));
    Add("wait", FormatWait(options.wait));
  }
  return *this;
}

bool IsBlocking(const ReadOptions& options) {
  return options.index > 0 && options.wait > base::Duration::zero();
}

absl::StatusOr<CallerReply> Caller::Get(const Target& target, const CallerText& text,
                                        base::Duration wait) const {
  http::HttpRequest request;
  request.target = target.text();
  request.purpose = text.purpose;
  // The server adds up to a sixteenth of jitter (hashicorp/nomad:nomad/rpc.go, blockingRPC).
  request.server_wait = wait + wait / 16;
  NH_ASSIGN_OR_RETURN(http::HttpResponse response, transport_.Send(context_, request));
  NH_RETURN_IF_ERROR(Refusal(response, text));
  CallerReply reply;
  reply.index = ReplyIndex(response);
  reply.next_token = response.headers.Find("X-Nomad-NextToken").value_or("");
  reply.body = std::move(response.body);
  return reply;
}

absl::Status Caller::Post(const Target& target, const CallerText& text, std::string body,
                          http::Idempotency idempotency) const {
  http::HttpRequest request;
  request.method = http::Method::kPost;
  request.target = target.text();
  request.purpose = text.purpose;
  request.effect = http::Effect::kWrite;
  request.idempotency = idempotency;
  if (!body.empty()) request.headers.Set("Content-Type", "application/json");
  request.body = std::move(body);
  NH_ASSIGN_OR_RETURN(http::HttpResponse response, transport_.Send(context_, request));
  return Refusal(response, text);
}

}  // namespace nomad_harvester::nomad
