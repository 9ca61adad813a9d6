// SPDX-License-Identifier: Apache-2.0
// Parses an operator's YAML into a JSON value, within limits.
#ifndef NOMAD_HARVESTER_SRC_KUBE_YAML_H_
#define NOMAD_HARVESTER_SRC_KUBE_YAML_H_

#include <string>

#include "nomad_harvester/kube/object.h"

#include "absl/status/statusor.h"

namespace nomad_harvester::kube {

// Parses text with exactly one document. All scalars become strings, except for the plain null; the
// reader converts each member to its type. A text that begins with "{" is tried as JSON first.
// INVALID_ARGUMENT, with a line number but never the content: bad syntax, several documents, a key
// that is duplicate or not a scalar, a merge key ("<<"), nesting deeper than 50 levels, aliases
// that expand to more than 20,000 values or 8 MiB.
absl::StatusOr<Json> ParseYaml(const std::string& text);

}  // namespace nomad_harvester::kube

#endif  // NOMAD_HARVESTER_SRC_KUBE_YAML_H_
