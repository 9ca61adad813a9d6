// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/base/status.h"

#include <string>
#include <string_view>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/nomad/client.h"

namespace nomad_harvester::nomad {
namespace {

using absl::StatusCode;

constexpr std::size_t kMaxText = 300;

// hashicorp/nomad:nomad/node_endpoint.go and nomad/state/state_store.go: for a missing node, reads
// return 404, writes 500 with this text.
constexpr std::string_view kNodeNotFound = "node not found";
constexpr std::string_view kStillDraining =
    "can not set node's scheduling eligibility to eligible while it is draining";

struct TextRow {
  std::string_view part;
  StatusCode code;
};
// The meaning of a 500, by a substring of its text, since errors of RPCs are wrapped. The last four
// are from hashicorp/nomad:nomad/structs/errors.go.
constexpr TextRow kServerErrors[] = {
    {kNodeNotFound, StatusCode::kNotFound},
    {kStillDraining, StatusCode::kFailedPrecondition},
    {"invalid scheduling eligibility", StatusCode::kInvalidArgument},
    {"ACL token expired", StatusCode::kPermissionDenied},
    {"No cluster leader", StatusCode::kUnavailable},
    {"Not ready to serve consistent reads", StatusCode::kUnavailable},
    {"No path to region", StatusCode::kUnavailable},
};

StatusCode CodeOfServerError(std::string_view body) {
  for (const TextRow& row : kServerErrors) {
    if (body.find(row.part) != std::string_view::npos) return row.code;
  }
  return StatusCode::kInternal;
}

StatusCode CodeOf(const http::HttpResponse& response) {
  switch (response.status) {
    case 400:
      return StatusCode::kInvalidArgument;
    case 401:
      return StatusCode::kUnauthenticated;
    case 403:
      return StatusCode::kPermissionDenied;
    case 404:
      return StatusCode::kNotFound;
    case 405:
      return StatusCode::kUnimplemented;
    case 408:
      return StatusCode::kUnavailable;
    case 429:
      return StatusCode::kUnavailable;
    case 500:
      return CodeOfServerError(response.body);
    case 502:
      return StatusCode::kUnavailable;
    case 503:
      return StatusCode::kUnavailable;
    case 504:
      return StatusCode::kUnavailable;
    default:
      break;
  }
  // A redirect, which is never followed, or a refusal by a proxy in front of Nomad.
  return response.status < 500 ? StatusCode::kFailedPrecondition : StatusCode::kInternal;
}

// One printable line: Nomad's bodies are plain text, a proxy's may be HTML pages.
std::string OneLine(std::string_view body) {
  std::string text = base::ToValidUtf8(base::TrimAsciiSpace(body.substr(0, kMaxText)));
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  if (body.size() > kMaxText) text += "...";
  return text;
}

}  // namespace

absl::Status ToStatus(const http::HttpResponse& response, std::string_view purpose) {
  if (response.status >= 200 && response.status < 300) return absl::OkStatus();
  const std::string text = OneLine(response.body);
  const std::string number = "HTTP " + std::to_string(response.status);
  std::string message = std::string(purpose) + ": ";
  message += text.empty() ? number : text + " (" + number + ")";
  return base::MakeStatus(CodeOf(response), message);
}

bool IsPermanentRefusal(const http::HttpResponse& response) {
  if (response.status != 500) return false;
  const StatusCode code = CodeOfServerError(response.body);
  return code != StatusCode::kInternal && code != StatusCode::kUnavailable;
}

}  // namespace nomad_harvester::nomad
