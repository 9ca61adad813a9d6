// SPDX-License-Identifier: Apache-2.0
// Finds the tags of a Mustache template and their kinds (mustache(5); sections, partials and
// lambdas are refused).
//
// The template library only renders: it reports no position for an unknown variable and renders it
// as nothing. It also keeps the line of a delimiter change, so that "#cloud-config" would not be
// the first line.
#ifndef NOMAD_HARVESTER_SRC_HARVESTER_TEMPLATE_SCANNER_H_
#define NOMAD_HARVESTER_SRC_HARVESTER_TEMPLATE_SCANNER_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace nomad_harvester::harvester {

struct TemplateTag {
  enum class Kind { kVariable, kComment, kDelimiters, kUnsupported };
  Kind kind = Kind::kVariable;
  std::string text;       // a variable's name; otherwise the tag's contents
  std::size_t begin = 0;  // of the opening delimiter
  std::size_t end = 0;    // after the closing one
};

struct TemplateProblem {
  std::size_t position = 0;
  std::string text;
};

struct ScannedTemplate {
  std::vector<TemplateTag> tags;          // in the order of the text, up to the first problem
  std::vector<TemplateProblem> problems;  // a tag without end, delimiters that cannot be read
};

ScannedTemplate ScanTemplate(std::string_view source);

// The source without the lines that contain only a comment or a change of delimiters; the tags
// themselves are kept. `scanned` must be the result for `source`.
std::string WithoutStandaloneLines(std::string_view source, const ScannedTemplate& scanned);

// "line 3, column 12", both from 1; columns count code points.
std::string DescribePosition(std::string_view source, std::size_t position);

}  // namespace nomad_harvester::harvester

#endif  // NOMAD_HARVESTER_SRC_HARVESTER_TEMPLATE_SCANNER_H_
