// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <string_view>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/harvester/metadata.h"

namespace nomad_harvester::harvester {

Hold ParseHold(std::string_view text) {
  if (const auto until = base::ParseRfc3339(text); until.ok()) return {.until = *until};
  return {.always = base::ParseGoBool(text).value_or(true)};
}

std::string FormatHold(const Hold& hold) {
  if (!hold.always && hold.until.has_value()) return base::FormatRfc3339Nanos(*hold.until);
  return hold.always ? "true" : "false";
}

}  // namespace nomad_harvester::harvester
