// SPDX-License-Identifier: Apache-2.0
#ifndef NOMAD_HARVESTER_TEST_SUPPORT_SOURCE_TREE_H_
#define NOMAD_HARVESTER_TEST_SUPPORT_SOURCE_TREE_H_

#include <string>

namespace nomad_harvester::support {

// The path of a file of this repository, `relative` to its top, for tests that read the examples
// and documents. One object file knows the path; the others compile alike in every clone and so
// share a compiler cache.
std::string SourcePath(const std::string& relative);

}  // namespace nomad_harvester::support

#endif  // NOMAD_HARVESTER_TEST_SUPPORT_SOURCE_TREE_H_
