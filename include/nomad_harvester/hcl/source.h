// SPDX-License-Identifier: Apache-2.0
// Holds the text of a file, and formats errors that show a mistake in it.
#ifndef NOMAD_HARVESTER_HCL_SOURCE_H_
#define NOMAD_HARVESTER_HCL_SOURCE_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace nomad_harvester::hcl {

// Immutable; safe for concurrent use. Offsets are bytes from the start of the text.
class Source {
 public:
  // `name` is the path shown in messages. A byte order mark is not part of
  // the text, except in JSON, where the agent refuses it.
  Source(std::string name, std::string text);

  const std::string& name() const { return name_; }
  std::string_view text() const { return text_; }

  // Returns "agent.hcl:12:9": line and column, in characters, start at 1.
  std::string Where(std::size_t offset) const;
  // INVALID_ARGUMENT, like a compiler's:
  //   agent.hcl:12:9: a string ends on its line
  //     12 |   driver = "harvester
  //        |            ^
  // Of a longer line the first 160 bytes. No line is shown if it has a name that announces a secret
  // (IsSecretName) or a URL with a login; kHidden is for an offset inside the value of such a name.
  enum class Line { kShown, kHidden };
  absl::Status Error(std::size_t offset, std::string_view message, Line line = Line::kShown) const;

 private:
  std::string name_;
  std::string text_;
};

// True if the value of this argument may be a secret and must not be shown: tokens, passwords,
// keys, headers, cloud-init data. The name of a file with a secret may be shown: true for
// "auth_token", false for "auth_token_file".
bool IsSecretName(std::string_view name);

}  // namespace nomad_harvester::hcl

#endif  // NOMAD_HARVESTER_HCL_SOURCE_H_
