// SPDX-License-Identifier: Apache-2.0
#ifndef NOMAD_HARVESTER_TEST_SUPPORT_SOURCE_TREE_H_
#define NOMAD_HARVESTER_TEST_SUPPORT_SOURCE_TREE_H_

#include <string>

namespace nomad_harvester::support {

// The path of a file of this repository, `relative` to its top, for tests that read the examples
// and documents. Only one object file contains the path; all others are identical in every clone
// and share a compiler cache.
std::string SourcePath(const std::string& relative);

}  // namespace nomad_harvester::support

#endif  // NOMAD_HARVESTER_TEST_SUPPORT_SOURCE_TREE_H_
