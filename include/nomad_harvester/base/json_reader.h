// SPDX-License-Identifier: Apache-2.0
// Reading large JSON documents: ParseJson of json.h for those who want a part only.
#ifndef NOMAD_HARVESTER_BASE_JSON_READER_H_
#define NOMAD_HARVESTER_BASE_JSON_READER_H_

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nlohmann/json_fwd.hpp"

namespace nomad_harvester::base {

// Members that are left out while a document is read, so that what nobody wants is never built: a
// list of 5,000 VMs is mostly managedFields and specs. A set of paths such as "spec.volumes", kept
// as a tree; "*" stands for any one member that no other path names there.
class DropTree {
 public:
  DropTree() = default;
  DropTree(std::initializer_list<std::string_view> paths) {
    for (const std::string_view path : paths) Add(path);
  }

  // Everything below a path that was added is dropped. An empty path is ignored.
  void Add(std::string_view dotted_path);
  // The subtree of a member; null if no path leads there.
  const DropTree* Find(std::string_view member) const;
  // Whether a path ends here.
  bool drops() const { return drops_; }

 private:
  std::string name_;
  bool drops_ = false;
  std::vector<DropTree> children_;
};

// Parses a whole document, without the members that `drop` names; arrays are passed through, so
// that a path applies to each of their elements. INVALID_ARGUMENT says "<what> is not JSON" with
// the position, never the content. Documents nested deeper than 200 levels are refused.
absl::StatusOr<nlohmann::json> ParseJson(std::string_view text, std::string_view what,
                                         const DropTree& drop);

// The same for a document that is one large list: calls `element` with each element, in order, and
// forgets it before the next one is built. `null` is an empty list: that is how Go writes a nil
// slice. INVALID_ARGUMENT also if the document is not a list. `element` may have been called by
// then, so the caller discards what it collected. The first error of `element` ends the reading and
// is returned.
absl::Status ParseJsonList(std::string_view text, std::string_view what, const DropTree& drop,
                           const std::function<absl::Status(const nlohmann::json&)>& element);

}  // namespace nomad_harvester::base

#endif  // NOMAD_HARVESTER_BASE_JSON_READER_H_
