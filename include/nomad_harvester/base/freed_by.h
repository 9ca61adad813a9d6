// SPDX-License-Identifier: Apache-2.0
// Ownership of objects of C libraries.
#ifndef NOMAD_HARVESTER_BASE_FREED_BY_H_
#define NOMAD_HARVESTER_BASE_FREED_BY_H_

namespace nomad_harvester::base {

// The deleter of a std::unique_ptr whose object the library's function kFree releases. It has no
// state, so the pointer has the size of a plain one.
template <auto kFree>
struct FreedBy {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};

}  // namespace nomad_harvester::base

#endif  // NOMAD_HARVESTER_BASE_FREED_BY_H_
