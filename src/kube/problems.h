// SPDX-License-Identifier: Apache-2.0
// Collects all problems of a configuration, so that they are reported together.
#ifndef NOMAD_HARVESTER_SRC_KUBE_PROBLEMS_H_
#define NOMAD_HARVESTER_SRC_KUBE_PROBLEMS_H_

#include <string>
#include <string_view>
#include <vector>

#include "nomad_harvester/base/status.h"

namespace nomad_harvester::kube {

class Problems {
 public:
  void Add(std::string_view key, std::string_view what) {
    lines_.push_back(std::string(key) + ": " + std::string(what));
  }
  // Returns the value; or notes the problem under `key` and returns a default.
  template <typename T>
  T ValueOr(absl::StatusOr<T> result, std::string_view key) {
    if (result.ok()) return *std::move(result);
    Add(key, base::Message(result.status()));
    return T{};
  }
  // INVALID_ARGUMENT with one line for each problem, or OK.
  absl::Status ToStatus() const {
    if (lines_.empty()) return absl::OkStatus();
    std::string text;
    for (const std::string& line : lines_) text += (text.empty() ? "" : "\n") + line;
    return base::InvalidArgument(text);
  }

 private:
  std::vector<std::string> lines_;
};

}  // namespace nomad_harvester::kube

#endif  // NOMAD_HARVESTER_SRC_KUBE_PROBLEMS_H_
