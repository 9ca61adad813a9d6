// SPDX-License-Identifier: Apache-2.0
#include "request_check.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"

#include "request_text.h"

namespace nomad_harvester::http {
namespace {

bool IsVisibleAscii(char c) { return c > ' ' && c < '\x7f'; }

// RFC 9110 5.6.2.
bool IsToken(std::string_view text) {
  constexpr std::string_view kDelimiters = "\"(),/:;<=>?@[\\]{}";
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return IsVisibleAscii(c) && kDelimiters.find(c) == std::string_view::npos;
  });
}

bool IsFieldValue(std::string_view text) {
  return text.find_first_of(std::string_view("\r\n\0", 3)) == std::string_view::npos;
}

// The transport sets these headers.
bool IsReserved(std::string_view name) {
  for (const std::string_view reserved :
       {"Host", "Content-Length", "Transfer-Encoding", "Connection", "Accept-Encoding"}) {
    if (base::EqualsIgnoreCase(name, reserved)) return true;
  }
  return false;
}

absl::Status Malformed(const HttpRequest& request, std::string_view what) {
  return base::InvalidArgument(RequestText(request) + ": " + std::string(what));
}

}  // namespace

absl::Status CheckRequest(const HttpRequest& request) {
  const std::string& target = request.target;
  if (!target.empty() && target.front() != '/') {
    return Malformed(request, "the request's target does not begin with '/'");
  }
  if (!std::all_of(target.begin(), target.end(), IsVisibleAscii) ||
      target.find('#') != std::string::npos) {
    return Malformed(request, "the request's target holds a character that is not escaped");
  }
  if (request.method == Method::kGet && !request.body.empty()) {
    return Malformed(request, "a GET cannot have a body");
  }
  for (const auto& [name, value] : request.headers.fields()) {
    if (!IsToken(name)) return Malformed(request, "a header's name is malformed");
    if (IsReserved(name)) return Malformed(request, "the header " + name + " cannot be set");
    if (!IsFieldValue(value)) {
      return Malformed(request, "the value of the header " + name + " holds a line break");
    }
  }
  return absl::OkStatus();
}

}  // namespace nomad_harvester::http
