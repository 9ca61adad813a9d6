// SPDX-License-Identifier: Apache-2.0
// A text with values in it, in parts. Private to module hcl.
#ifndef NOMAD_HARVESTER_HCL_TEMPLATE_PARTS_H_
#define NOMAD_HARVESTER_HCL_TEMPLATE_PARTS_H_

#include <optional>
#include <string>
#include <vector>

#include "nomad_harvester/hcl/document.h"

namespace nomad_harvester::hcl {

struct TemplatePart {
  std::string text;            // without `value`
  std::optional<Value> value;  // of ${…}
  // Of a text of several lines: this part is the beginning of one.
  bool begins_line = false;
};
using TemplateParts = std::vector<TemplatePart>;

// The text at the end of `parts`, to append to.
std::string* LiteralOf(TemplateParts* parts);

// <<-: takes the smallest indentation of all lines from each line. Lines of white space alone do
// not count and stay; a line that begins with ${…} has none (hashicorp/hcl:hclsyntax/
// parser_template.go, flushHeredocTemplateParts).
void RemoveIndentation(TemplateParts* parts);

}  // namespace nomad_harvester::hcl

#endif  // NOMAD_HARVESTER_HCL_TEMPLATE_PARTS_H_
