// SPDX-License-Identifier: Apache-2.0
// The addresses that the configuration accepts.
#ifndef NOMAD_HARVESTER_SRC_CONFIG_URLS_H_
#define NOMAD_HARVESTER_SRC_CONFIG_URLS_H_

#include <string>

#include "config_reader.h"

namespace nomad_harvester::config {

// "http(s)://host[:port][/path]" without user, query or fragment. Trailing slashes are removed, so
// that a path can be appended. Messages omit a text with '@' or '?', which may hold a secret.
ValueOr<std::string> HttpUrl(const std::string& text);
// The same, or "unix:///path".
ValueOr<std::string> NomadAddress(const std::string& text);
// A host name or an IP address, without port.
ValueOr<std::string> HostName(const std::string& text);

}  // namespace nomad_harvester::config

#endif  // NOMAD_HARVESTER_SRC_CONFIG_URLS_H_
