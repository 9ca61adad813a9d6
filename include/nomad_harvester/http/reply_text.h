// SPDX-License-Identifier: Apache-2.0
// Describes unsuccessful replies for people, with the same wording for every system.
#ifndef NOMAD_HARVESTER_HTTP_REPLY_TEXT_H_
#define NOMAD_HARVESTER_HTTP_REPLY_TEXT_H_

#include <string>
#include <string_view>

#include "nomad_harvester/http/message.h"

#include "absl/status/status.h"

namespace nomad_harvester::http {

// Returns one line of valid UTF-8 without secrets, cut after about `limit` bytes. White space and
// control characters become single spaces.
std::string OneLine(std::string_view text, std::size_t limit);

// Describes the body of a reply: its text, or for HTML "an HTML page: Bad Gateway". Only the first
// 256 KiB are used.
std::string TextOfBody(std::string_view body);
inline bool IsPage(std::string_view text_of_body) {
  return text_of_body.starts_with("an HTML page");
}

// "this is not Nomad's API: check nomad_address".
std::string NotTheApi(std::string_view system, std::string_view key);

// Returns a hint about the address in `key` that follows from a body's text: "this port speaks TLS:
// write https:// in nomad_address", or NotTheApi for a page. Empty: no hint.
std::string AddressHint(std::string_view text_of_body, std::string_view system,
                        std::string_view key);

// Builds the error for a successful reply with an unexpected body: INTERNAL, with `why` or with the
// fact that the body is an HTML page. Never quotes the body, which may contain a secret.
absl::Status Undecodable(std::string_view purpose, const HttpResponse& response,
                         const absl::Status& why, std::string_view key);
// True for an Undecodable about an HTML page: another server answers at the address.
bool IsAnsweredByPage(const absl::Status& status);

inline bool IsRedirection(const HttpResponse& response) {
  return response.status >= 300 && response.status <= 399;
}
// "redirected to https://…, which is not followed: check <key>", without the parts of the target
// that may be secret: user, password and query.
std::string RedirectionText(const HttpResponse& response, std::string_view key);

}  // namespace nomad_harvester::http

#endif  // NOMAD_HARVESTER_HTTP_REPLY_TEXT_H_
