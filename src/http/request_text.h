// SPDX-License-Identifier: Apache-2.0
// Texts about a request for errors and logs.
#ifndef NOMAD_HARVESTER_SRC_HTTP_REQUEST_TEXT_H_
#define NOMAD_HARVESTER_SRC_HTTP_REQUEST_TEXT_H_

#include <string>
#include <string_view>

#include "nomad_harvester/base/time.h"
#include "nomad_harvester/http/message.h"

#include "absl/status/status.h"

namespace nomad_harvester::http {

// Returns the purpose or, if there is none, method and path without the query, which may contain a
// token.
std::string RequestText(const HttpRequest& request);

// Returns a request target in which the value of every query parameter is replaced, except for an
// allow-list of harmless and useful ones, so that unknown parameters are hidden.
std::string RedactTarget(std::string_view target);

// Removes user names and passwords of URLs ("http://user:secret@proxy") from a library's error
// text, and rewords the two phrases that make the agent restart all policies, "connection refused"
// and "EOF" (hashicorp/nomad-autoscaler:policy/manager.go). Inside a longer word they remain: see
// plugin::Scrub.
std::string CleanErrorText(std::string_view text);

// "timed out after 10s waiting for https://host:443". `limit` is rounded, because the remaining
// time of a context is a little less than its timeout.
std::string TimedOutText(base::Duration limit, std::string_view doing);

// Converts the status of a context that ended during a wait: DEADLINE_EXCEEDED gets the text above;
// any other status is returned unchanged.
absl::Status TimedOut(const absl::Status& ended, base::Duration limit, std::string_view doing);

}  // namespace nomad_harvester::http

#endif  // NOMAD_HARVESTER_SRC_HTTP_REQUEST_TEXT_H_
