// SPDX-License-Identifier: Apache-2.0
// Where the tags of a Mustache template stand and what they ask for (mustache(5); the sections,
// partials and lambdas of the language are refused).
//
// The library renders; it has no positions to tell for an unknown variable, renders one as nothing,
// and keeps the line of a delimiter change, which would push "#cloud-config" off the first line.
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
  std::string text;       // of a variable its name, of anything else what stands in the tag
  std::size_t begin = 0;  // of the opening delimiter
  std::size_t end = 0;    // behind the closing one
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

// The source without the lines on which a comment or a change of delimiters stands alone; the tags
// themselves stay. `scanned` is of that source.
std::string WithoutStandaloneLines(std::string_view source, const ScannedTemplate& scanned);

// "line 3, column 12", both from 1; columns count code points.
std::string DescribePosition(std::string_view source, std::size_t position);

}  // namespace nomad_harvester::harvester

#endif  // NOMAD_HARVESTER_SRC_HARVESTER_TEMPLATE_SCANNER_H_
