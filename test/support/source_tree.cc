// SPDX-License-Identifier: Apache-2.0
#include "support/source_tree.h"

namespace nomad_harvester::support {

std::string SourcePath(const std::string& relative) {
  return std::string(NOMAD_HARVESTER_SOURCE_DIR) + "/" + relative;
}

}  // namespace nomad_harvester::support
