// SPDX-License-Identifier: Apache-2.0
// Removes credentials from texts for errors and logs.
#ifndef NOMAD_HARVESTER_SRC_HTTP_REDACT_H_
#define NOMAD_HARVESTER_SRC_HTTP_REDACT_H_

#include <string>
#include <string_view>

namespace nomad_harvester::http {

// A request target with the value of every query parameter replaced, except for an allow-list of
// harmless and useful ones. Unknown parameters are therefore hidden.
std::string RedactTarget(std::string_view target);

// A library's error text without user names and passwords of URLs ("http://user:secret@proxy"), and
// without the two phrases that make the agent restart all policies
// (hashicorp/nomad-autoscaler:policy/manager.go).
std::string CleanErrorText(std::string_view text);

}  // namespace nomad_harvester::http

#endif  // NOMAD_HARVESTER_SRC_HTTP_REDACT_H_
