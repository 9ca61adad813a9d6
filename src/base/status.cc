// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/base/status.h"

#include <string>
#include <string_view>

#include "absl/strings/cord.h"

namespace nomad_harvester::base {

// Not by the template constructor of Cord: its name is mangled in another way by Clang 18 and newer
// than in Debian's library, which GCC compiled.
void SetPayload(std::string_view url, std::string_view text, absl::Status* status) {
  status->SetPayload(ToAbsl(url), absl::Cord(ToAbsl(text)));
}

absl::Status Annotate(const absl::Status& status, std::string_view context) {
  if (status.ok()) return status;
  absl::Status result =
      MakeStatus(status.code(), std::string(context) + ": " + std::string(status.message()));
  status.ForEachPayload([&result](absl::string_view url, const absl::Cord& payload) {
    result.SetPayload(url, payload);
  });
  return result;
}

}  // namespace nomad_harvester::base
