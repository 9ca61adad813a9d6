// Reads a JSON document and leaves members out while it reads, so that what nobody wants is never
// built: a list of 5,000 VMs is mostly managedFields and specs.
#ifndef NOMAD_HARVESTER_SRC_KUBE_PRUNING_READER_H_
#define NOMAD_HARVESTER_SRC_KUBE_PRUNING_READER_H_

#include <string>
#include <string_view>
#include <vector>

#include "nomad_harvester/kube/object.h"

#include "absl/status/statusor.h"

namespace nomad_harvester::kube {

// A set of dotted paths as a tree of member names.
class DropTree {
 public:
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

// The document without the members that `drop` names; arrays are passed through, so that a path
// applies to each of their elements. INVALID_ARGUMENT says where the text is no JSON or nested
// deeper than 200 levels, never what stands there.
absl::StatusOr<Json> ReadPruned(std::string_view text, const DropTree& drop);

}  // namespace nomad_harvester::kube

#endif  // NOMAD_HARVESTER_SRC_KUBE_PRUNING_READER_H_
