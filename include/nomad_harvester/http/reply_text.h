// SPDX-License-Identifier: Apache-2.0
// What a reply that is no success says, for people: the same words for every system.
#ifndef NOMAD_HARVESTER_HTTP_REPLY_TEXT_H_
#define NOMAD_HARVESTER_HTTP_REPLY_TEXT_H_

#include <string>
#include <string_view>

#include "nomad_harvester/http/message.h"

#include "absl/status/status.h"

namespace nomad_harvester::http {

// One line of valid UTF-8 without secrets, cut after about so many bytes: white space and control
// characters become single spaces.
std::string OneLine(std::string_view text, std::size_t limit);

// What a body that is not the system's own says: its text, or "an HTML page: Bad Gateway". Of a
// long one its first 256 KiB.
std::string TextOfBody(std::string_view body);
inline bool IsPage(std::string_view text_of_body) {
  return text_of_body.starts_with("an HTML page");
}

// "this is not Nomad's API: check nomad_address".
std::string NotTheApi(std::string_view system, std::string_view key);

// What the text of a body says of the address in `key`: "this port speaks TLS: write https:// in
// nomad_address", or NotTheApi of a page; empty: nothing.
std::string AddressHint(std::string_view text_of_body, std::string_view system,
                        std::string_view key);

// INTERNAL: the body of a success is not what was asked for, `why`. Of a page it says that it is
// one. Quotes no part of the body, which may be a secret.
absl::Status Undecodable(std::string_view purpose, const HttpResponse& response,
                         const absl::Status& why, std::string_view key);
// Whether an Undecodable was a page: another server answers at the address.
bool IsAnsweredByPage(const absl::Status& status);

inline bool IsRedirection(const HttpResponse& response) {
  return response.status >= 300 && response.status <= 399;
}
// "redirected to https://…, which is not followed: check <key>", without the parts of the target
// that may be secret: user, password and query.
std::string RedirectionText(const HttpResponse& response, std::string_view key);

}  // namespace nomad_harvester::http

#endif  // NOMAD_HARVESTER_HTTP_REPLY_TEXT_H_
