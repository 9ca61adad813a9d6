// SPDX-License-Identifier: Apache-2.0
// What may be shown of texts that can hold credentials.
#ifndef NOMAD_HARVESTER_SRC_HTTP_REDACT_H_
#define NOMAD_HARVESTER_SRC_HTTP_REDACT_H_

#include <string>
#include <string_view>

namespace nomad_harvester::http {

// A request target with the value of every query parameter replaced, except those of an allow-list
// that are known to be harmless and to be worth reading. A parameter nobody thought of is therefore
// hidden, not shown.
std::string RedactTarget(std::string_view target);

// A library's error text without user names and passwords of URLs ("http://user:secret@proxy"), and
// without the two phrases that make the agent restart all policies
// (hashicorp/nomad-autoscaler:policy/manager.go).
std::string CleanErrorText(std::string_view text);

}  // namespace nomad_harvester::http

#endif  // NOMAD_HARVESTER_SRC_HTTP_REDACT_H_
