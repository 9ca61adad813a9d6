// SPDX-License-Identifier: Apache-2.0
// YAML from an operator as a JSON value, within limits.
#ifndef NOMAD_HARVESTER_SRC_KUBE_YAML_H_
#define NOMAD_HARVESTER_SRC_KUBE_YAML_H_

#include <string>

#include "nomad_harvester/kube/object.h"

#include "absl/status/statusor.h"

namespace nomad_harvester::kube {

// The only document of the text. Scalars become strings whatever they look like, apart from the
// plain null: the reader knows which member it wants as what. A text that begins with "{" is read
// as JSON first. INVALID_ARGUMENT, with a line but never the content: bad syntax, several
// documents, a key given twice or that is not a scalar, a merge key ("<<"), nesting deeper than 50
// levels, aliases that expand to more than 20,000 values or 8 MiB.
absl::StatusOr<Json> ParseYaml(const std::string& text);

}  // namespace nomad_harvester::kube

#endif  // NOMAD_HARVESTER_SRC_KUBE_YAML_H_
