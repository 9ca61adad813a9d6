// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/plugin/host_contract.h"

#include <optional>
#include <string>

namespace nomad_harvester::plugin {

bool StartedByHost(const config::Environment& environment) {
  const std::optional<std::string> cookie = environment(kCookieKey);
  return cookie.has_value() && *cookie == kCookieValue;
}

}  // namespace nomad_harvester::plugin
