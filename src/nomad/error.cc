// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/nomad/error.h"

#include <string>

#include <nlohmann/json.hpp>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/http/reply_text.h"

#include "caller.h"

namespace nomad_harvester::nomad {
namespace {

using absl::StatusCode;

constexpr char kPayloadUrl[] = "nomad-harvester/nomad-error";
constexpr std::size_t kMaxText = 300;

enum class Meaning {
  kRefused,
  kChanged,  // the request does not fit the state of the node, which must be read again
  kTransient,
};

struct ErrorRow {
  int http_status;
  std::string_view part;
  StatusCode code;
  Meaning meaning;
};
// The meaning of an error, by a substring of its text, because errors of RPCs are wrapped. The
// first matching row decides. All from hashicorp/nomad: nomad/structs/errors.go, unless a row says
// otherwise.
constexpr ErrorRow kErrors[] = {
    // nomad/acl_endpoint.go, aclDisabled.
    {400, "ACL support disabled", StatusCode::kInvalidArgument, Meaning::kRefused},
    // The body was changed in transit. command/agent/http.go, decodeBody; the second text is from
    // golang/go:src/encoding/json.
    {400, "Request body is empty", StatusCode::kInvalidArgument, Meaning::kRefused},
    {400, "json: cannot unmarshal", StatusCode::kInvalidArgument, Meaning::kRefused},
    {400, "invalid character", StatusCode::kInvalidArgument, Meaning::kRefused},
    // command/agent/http.go, wrap, turns the last two into 403; before Nomad 1.5 an expired token
    // is 500. Tokens are rotated, and a server may not have the new one yet.
    {403, "Permission denied", StatusCode::kPermissionDenied, Meaning::kRefused},
    {403, "ACL token not found", StatusCode::kUnauthenticated, Meaning::kTransient},
    {403, "ACL token expired", StatusCode::kUnauthenticated, Meaning::kTransient},
    {500, "ACL token not found", StatusCode::kUnauthenticated, Meaning::kTransient},
    {500, "ACL token expired", StatusCode::kUnauthenticated, Meaning::kTransient},
    // The answer to a write: nomad/node_endpoint.go and nomad/state/state_store.go. Reads return
    // 404 for a missing node.
    {500, "node not found", StatusCode::kNotFound, Meaning::kChanged},
    {500, "can not set node's scheduling eligibility to eligible while it is draining",
     StatusCode::kFailedPrecondition, Meaning::kChanged},
    // nomad/client_rpc.go, and command/agent/meta_endpoint.go for the status: the node's client is
    // not connected.
    {404, "No path to node", StatusCode::kUnavailable, Meaning::kTransient},
    {500, "Unknown node", StatusCode::kNotFound, Meaning::kChanged},
    {500, "invalid scheduling eligibility", StatusCode::kInvalidArgument, Meaning::kRefused},
    // hashicorp/go-memdb:index.go, UUIDFieldIndex, which nomad/state/schema.go uses for IDs.
    {500, "UUID must be 36 characters", StatusCode::kInvalidArgument, Meaning::kRefused},
    // nomad/alloc_endpoint.go, GetAlloc: the allocation exists, but the token lacks the right to
    // read it.
    {500, "Unknown allocation", StatusCode::kPermissionDenied, Meaning::kRefused},
    {500, "No cluster leader", StatusCode::kUnavailable, Meaning::kTransient},
    {500, "Not ready to serve consistent reads", StatusCode::kUnavailable, Meaning::kTransient},
    {500, "No path to region", StatusCode::kUnavailable, Meaning::kTransient},
    // Any other text, which may come from a proxy or from a server in trouble.
    {400, "", StatusCode::kInvalidArgument, Meaning::kTransient},
    {401, "", StatusCode::kUnauthenticated, Meaning::kTransient},
    {403, "", StatusCode::kPermissionDenied, Meaning::kTransient},
    {404, "", StatusCode::kNotFound, Meaning::kTransient},
    {405, "", StatusCode::kUnimplemented, Meaning::kTransient},
    {408, "", StatusCode::kUnavailable, Meaning::kTransient},
    {429, "", StatusCode::kUnavailable, Meaning::kTransient},
    {502, "", StatusCode::kUnavailable, Meaning::kTransient},
    {503, "", StatusCode::kUnavailable, Meaning::kTransient},
    {504, "", StatusCode::kUnavailable, Meaning::kTransient},
};

// Null if the table says nothing about the error.
const ErrorRow* FindRow(const NomadError& error) {
  for (const ErrorRow& row : kErrors) {
    if (row.http_status == error.http_status && error.text.find(row.part) != std::string::npos) {
      return &row;
    }
  }
  return nullptr;
}

StatusCode CodeOf(const NomadError& error) {
  if (const ErrorRow* row = FindRow(error); row != nullptr) return row->code;
  // A redirect, which is never followed, or a refusal by a proxy in front of Nomad.
  return error.http_status < 500 ? StatusCode::kFailedPrecondition : StatusCode::kInternal;
}

// Nomad's bodies are plain text, a proxy's may be HTML pages.
NomadError ReadError(const http::HttpResponse& response) {
  return {response.status, http::OneLine(http::TextOfBody(response.body), kMaxText),
          ReplyIndex(response).value_or(0)};
}

}  // namespace

absl::Status ToStatus(const http::HttpResponse& response, std::string_view purpose,
                      std::string_view needs) {
  if (response.is_success()) return absl::OkStatus();
  const NomadError error = ReadError(response);
  const std::string number = "HTTP " + std::to_string(error.http_status);
  std::string message = std::string(purpose) + ": ";
  const std::string said =
      http::IsRedirection(response) ? http::RedirectionText(response, "nomad_address") : error.text;
  message += said.empty() ? number : said + " (" + number + ")";
  const StatusCode code = CodeOf(error);
  if (code == StatusCode::kPermissionDenied && !needs.empty()) {
    message += "; the Nomad token needs " + std::string(needs);
  }
  if (code == StatusCode::kUnauthenticated) {
    message +=
        "; the token is unknown to it, or has expired: check nomad_token, nomad_token_file "
        "or NOMAD_TOKEN";
  }
  // Go's HTTP server answers an unknown path like this. Like an HTML page, it shows that another
  // server answers.
  constexpr char kKey[] = "nomad_address";
  const std::string hint = error.text == "404 page not found"
                               ? http::NotTheApi("Nomad", kKey)
                               : http::AddressHint(error.text, "Nomad", kKey);
  if (error.http_status < 500 && !hint.empty()) message += "; " + hint;
  absl::Status status = base::MakeStatus(code, message);
  const nlohmann::json payload = {
      {"status", error.http_status}, {"text", error.text}, {"index", error.index}};
  base::SetPayload(kPayloadUrl, base::DumpJson(payload), &status);
  return status;
}

std::optional<NomadError> GetNomadError(const absl::Status& status) {
  if (http::IsAnsweredByPage(status)) return NomadError{200, "", 0};
  const auto payload = status.GetPayload(kPayloadUrl);
  if (!payload.has_value()) return std::nullopt;
  const auto json = base::ParseJson(std::string(*payload), "the payload");
  if (!json.ok()) return std::nullopt;
  NomadError error{static_cast<int>(base::GetInt(*json, "status")), base::GetString(*json, "text"),
                   0};
  // An index has 64 bits; GetInt reads only 63.
  const auto* index = base::FindMember(*json, "index");
  if (index != nullptr && index->is_number_unsigned()) error.index = index->get<std::uint64_t>();
  return error;
}

bool IsRefused(const absl::Status& status) {
  const std::optional<NomadError> error = GetNomadError(status);
  const ErrorRow* row = error.has_value() ? FindRow(*error) : nullptr;
  return row != nullptr && row->meaning == Meaning::kRefused;
}

bool IsPermanentRefusal(const http::HttpResponse& response) {
  if (response.status != 500) return false;
  const ErrorRow* row = FindRow(ReadError(response));
  return row != nullptr && row->meaning != Meaning::kTransient;
}

}  // namespace nomad_harvester::nomad
