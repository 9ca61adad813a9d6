// SPDX-License-Identifier: Apache-2.0
#ifndef NOMAD_HARVESTER_TEST_BASE_NESTED_ARRAYS_H_
#define NOMAD_HARVESTER_TEST_BASE_NESTED_ARRAYS_H_

#include <cstddef>
#include <string>

namespace nomad_harvester::base {

inline std::string NestedArrays(std::size_t depth) {
  return std::string(depth, '[') + std::string(depth, ']');
}

}  // namespace nomad_harvester::base

#endif  // NOMAD_HARVESTER_TEST_BASE_NESTED_ARRAYS_H_
