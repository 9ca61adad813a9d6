// SPDX-License-Identifier: Apache-2.0
// Lets std::unique_ptr own objects of C libraries.
#ifndef NOMAD_HARVESTER_BASE_FREED_BY_H_
#define NOMAD_HARVESTER_BASE_FREED_BY_H_

namespace nomad_harvester::base {

// A deleter for std::unique_ptr that calls kFree, a function of the C library. It has no state, so
// the pointer is as small as a plain one.
template <auto kFree>
struct FreedBy {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};

}  // namespace nomad_harvester::base

#endif  // NOMAD_HARVESTER_BASE_FREED_BY_H_
