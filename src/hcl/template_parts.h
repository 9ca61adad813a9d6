// SPDX-License-Identifier: Apache-2.0
// A text with embedded values, split into parts. Private to module hcl.
#ifndef NOMAD_HARVESTER_HCL_TEMPLATE_PARTS_H_
#define NOMAD_HARVESTER_HCL_TEMPLATE_PARTS_H_

#include <optional>
#include <string>
#include <vector>

#include "nomad_harvester/hcl/document.h"

namespace nomad_harvester::hcl {

struct TemplatePart {
  std::string text;            // without `value`
  std::optional<Value> value;  // the value of ${…}
  // In a text of several lines: this part begins a line.
  bool begins_line = false;
};
using TemplateParts = std::vector<TemplatePart>;

// Returns the text at the end of `parts`, to append to.
std::string* LiteralOf(TemplateParts* parts);

// <<-: removes the smallest indentation of all lines from each line. Lines that contain only white
// space do not count and are kept; a line that begins with ${…} has no indentation
// (hashicorp/hcl:hclsyntax/parser_template.go, flushHeredocTemplateParts).
void RemoveIndentation(TemplateParts* parts);

}  // namespace nomad_harvester::hcl

#endif  // NOMAD_HARVESTER_HCL_TEMPLATE_PARTS_H_
