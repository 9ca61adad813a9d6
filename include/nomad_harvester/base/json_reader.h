// SPDX-License-Identifier: Apache-2.0
// Parses large JSON documents of which the caller needs only a part. Otherwise as ParseJson of
// json.h.
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

// Members that the parser skips, which saves the memory for them: a list of 5,000 VMs is mostly
// managedFields and specs. A set of paths such as "spec.volumes", kept as a tree; "*" matches any
// member that no other path names at that level.
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

// Parses a whole document without the members that `drop` names; a path applies to each element of
// an array. INVALID_ARGUMENT has the message "<what> is not JSON" and the position, never the
// content. Documents nested deeper than 200 levels are rejected.
absl::StatusOr<nlohmann::json> ParseJson(std::string_view text, std::string_view what,
                                         const DropTree& drop);

// The same for a document that is one large list: calls `element` with each element, in order, and
// frees it before it builds the next one. `null` is an empty list, because Go writes a nil slice as
// null. INVALID_ARGUMENT also if the document is not a list. After an error the caller must discard
// the elements collected so far. The first error of `element` stops the parser and is returned.
absl::Status ParseJsonList(std::string_view text, std::string_view what, const DropTree& drop,
                           const std::function<absl::Status(const nlohmann::json&)>& element);

}  // namespace nomad_harvester::base

#endif  // NOMAD_HARVESTER_BASE_JSON_READER_H_
