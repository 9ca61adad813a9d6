// SPDX-License-Identifier: Apache-2.0
// Renders Mustache templates that contain only variables, comments and changes of delimiters
// (mustache(5)). Sections, partials and lambdas are refused.
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/harvester/vm_spec.h"

#include "absl/strings/ascii.h"
#include "nlohmann/json.hpp"

namespace nomad_harvester::harvester {
namespace {

using base::TrimAsciiSpace;

// The limit of a Secret (kubernetes/kubernetes:pkg/apis/core/types.go, MaxSecretSize). A larger
// text cannot become user data.
constexpr std::size_t kMaxTemplateBytes = 1024 * 1024;
constexpr std::size_t kMaxProblems = 10;
constexpr std::size_t kMaxNameBytes = 60;

constexpr std::string_view kForeignBracesHint =
    "to keep other {{ }} (Jinja, consul-template, Nomad), change Mustache's delimiters before "
    "them: {{=<% %>=}}, then <%vm_name%>";

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

struct Delimiters {
  std::string open = "{{";
  std::string close = "}}";
  // {{{name}}} exists with the default delimiters only.
  bool AreDefault() const { return open == "{{" && close == "}}"; }
};

bool IsDelimiter(std::string_view text) {
  return !text.empty() && text.find_first_of("= \t\r\n\v\f") == std::string_view::npos;
}

// Parses "=<% %>=", without white space around it.
std::optional<Delimiters> ParseDelimiters(std::string_view contents) {
  if (contents.size() < 2 || contents.back() != '=') return std::nullopt;
  const std::string_view pair = TrimAsciiSpace(contents.substr(1, contents.size() - 2));
  const std::size_t space = pair.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  const std::string_view open = pair.substr(0, space);
  const std::string_view close = TrimAsciiSpace(pair.substr(space));
  if (!IsDelimiter(open) || !IsDelimiter(close)) return std::nullopt;
  return Delimiters{std::string(open), std::string(close)};
}

TemplateTag ClassifyTag(std::string_view contents, bool triple) {
  TemplateTag tag;
  if (triple || contents.empty()) {
    tag.text = std::string(contents);
    // Libraries differ in whether {{{=…}}} changes the delimiters.
    if (triple && contents.starts_with('=')) tag.kind = TemplateTag::Kind::kUnsupported;
    return tag;
  }
  switch (contents.front()) {
    case '!':
      tag.kind = TemplateTag::Kind::kComment;
      break;
    case '=':
      tag.kind = TemplateTag::Kind::kDelimiters;
      break;
    case '#':
    case '^':
    case '/':
    case '>':
      tag.kind = TemplateTag::Kind::kUnsupported;
      break;
    case '&':
      contents = TrimAsciiSpace(contents.substr(1));
      break;
    default:
      break;
  }
  tag.text = std::string(contents);
  return tag;
}

// The start of the tag's line if only spaces and tabs precede the tag; otherwise nullopt.
std::optional<std::size_t> IndentBefore(std::string_view source, std::size_t begin) {
  while (begin > 0 && (source[begin - 1] == ' ' || source[begin - 1] == '\t')) --begin;
  if (begin == 0 || source[begin - 1] == '\n' || source[begin - 1] == '\r') return begin;
  return std::nullopt;
}

// The position after the line break that follows a tag; nullopt if anything else follows.
std::optional<std::size_t> LineEndAfter(std::string_view source, std::size_t end) {
  while (end < source.size() && (source[end] == ' ' || source[end] == '\t')) ++end;
  if (end == source.size()) return end;
  if (source.substr(end).starts_with("\r\n")) return end + 2;
  if (source[end] == '\n' || source[end] == '\r') return end + 1;
  return std::nullopt;
}

ScannedTemplate ScanTemplate(std::string_view source) {
  ScannedTemplate scanned;
  Delimiters delimiters;
  std::size_t position = 0;
  while ((position = source.find(delimiters.open, position)) != std::string_view::npos) {
    std::size_t contents = position + delimiters.open.size();
    const bool triple =
        delimiters.AreDefault() && contents < source.size() && source[contents] == '{';
    if (triple) ++contents;
    const std::string_view close = triple ? std::string_view("}}}") : delimiters.close;
    const std::size_t end = source.find(close, contents);
    if (end == std::string_view::npos) {
      scanned.problems.push_back(
          {position, "the tag that begins here is not closed by " + std::string(close)});
      return scanned;
    }
    const std::string_view text = TrimAsciiSpace(source.substr(contents, end - contents));
    TemplateTag tag = ClassifyTag(text, triple);
    tag.begin = position;
    tag.end = end + close.size();
    position = tag.end;
    if (tag.kind == TemplateTag::Kind::kDelimiters) {
      std::optional<Delimiters> changed = ParseDelimiters(text);
      if (!changed) {
        scanned.problems.push_back({tag.begin, "this change of delimiters cannot be read"});
        return scanned;
      }
      delimiters = *std::move(changed);
    }
    scanned.tags.push_back(std::move(tag));
  }
  return scanned;
}

// "line 3, column 12", both from 1; columns count code points.
std::string DescribePosition(std::string_view source, std::size_t position) {
  const std::string_view before = source.substr(0, position);
  const auto lines = std::count(before.begin(), before.end(), '\n');
  const std::size_t newline = before.rfind('\n');
  const std::string_view line =
      newline == std::string_view::npos ? before : before.substr(newline + 1);
  // UTF-8 continuation bytes are not counted.
  const auto columns = std::count_if(line.begin(), line.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  });
  return "line " + std::to_string(lines + 1) + ", column " + std::to_string(columns + 1);
}

// Cuts the text at the first quotation mark or "=": the tag may belong to another program and be
// followed by a secret.
std::string Quote(std::string_view text) {
  const std::size_t open =
      std::min({text.size(), kMaxNameBytes, text.find_first_of("\"'`"), text.find('=', 1)});
  std::string shown(text.substr(0, open));
  if (open < text.size()) shown += "...";
  return base::DumpJson(nlohmann::json(shown));
}

std::string UnknownVariable(const std::string& name, const TemplateVariables& known) {
  std::vector<std::string> names;
  for (const auto& [candidate, value] : known) names.push_back(candidate);
  std::string text = "unknown variable " + Quote(name);
  if (name.starts_with("env.HARVESTER_TEMPLATE_")) {
    return text + ": set it in the environment of the agent, and of this command";
  }
  if (const auto nearest = base::NearestName(name, names)) {
    return text + ", did you mean " + Quote(*nearest) + "?";
  }
  text += "; known variables:";
  for (const std::string& candidate : names) text += " " + candidate;
  return text;
}

// True for values that do not end the line, the text or the comment that a template has them in,
// whatever its language: YAML, HCL, a shell. Nomad itself accepts nearly any text as a class, a
// datacenter or a region (hashicorp/nomad:command/agent/command.go, IsValidConfig).
bool IsPlainValue(std::string_view value) {
  constexpr std::string_view kPunctuation = " -_.:/@+,=()~";
  // YAML 1.1 ends a line at these, too: NEL, LS and PS.
  for (const std::string_view line_end : {"\xC2\x85", "\xE2\x80\xA8", "\xE2\x80\xA9"}) {
    if (value.find(line_end) != std::string_view::npos) return false;
  }
  return std::all_of(value.begin(), value.end(), [&](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
           static_cast<unsigned char>(c) >= 0x80U || kPunctuation.find(c) != std::string_view::npos;
  });
}

std::optional<std::string> ProblemOfValue(const std::string& name, const std::string& value) {
  // What the operator's own environment adds may be any text.
  if (name.starts_with("env.") || IsPlainValue(value)) return std::nullopt;
  // The value may be a token, so it is not quoted.
  return "the value of {{" + name +
         "}} has a line break, a quotation mark or another character that could change the rest of "
         "the template: allowed are letters, digits, spaces and -_.:/@+,=()~; change it where it "
         "is set";
}

std::optional<std::string> FindProblem(const TemplateTag& tag, const TemplateVariables& known) {
  switch (tag.kind) {
    case TemplateTag::Kind::kVariable:
      if (const auto found = known.find(tag.text); found != known.end()) {
        return ProblemOfValue(tag.text, found->second);
      }
      return UnknownVariable(tag.text, known);
    case TemplateTag::Kind::kUnsupported:
      return "sections and partials are not supported: " + Quote(tag.text);
    case TemplateTag::Kind::kComment:
    case TemplateTag::Kind::kDelimiters:
      break;
  }
  return std::nullopt;
}

absl::StatusOr<ScannedTemplate> Check(const std::string& source, const TemplateVariables& known) {
  if (source.size() > kMaxTemplateBytes) {
    return base::InvalidArgument("the template is larger than 1 MiB, the limit of a Secret");
  }
  ScannedTemplate scanned = ScanTemplate(source);
  std::vector<TemplateProblem> problems;
  bool foreign = !scanned.problems.empty();
  for (const TemplateTag& tag : scanned.tags) {
    auto problem = FindProblem(tag, known);
    if (!problem) continue;
    foreign = foreign || tag.kind != TemplateTag::Kind::kVariable || !known.contains(tag.text);
    problems.push_back({tag.begin, *std::move(problem)});
  }
  problems.insert(problems.end(), scanned.problems.begin(), scanned.problems.end());
  if (problems.empty()) return scanned;

  std::string text;
  for (std::size_t i = 0; i < problems.size() && i < kMaxProblems; ++i) {
    text += DescribePosition(source, problems[i].position) + ": " + problems[i].text + "\n";
  }
  if (problems.size() > kMaxProblems) {
    text += "and " + std::to_string(problems.size() - kMaxProblems) + " more\n";
  }
  if (foreign) text += kForeignBracesHint;
  return base::InvalidArgument(std::string(base::TrimAsciiSpace(text)));
}

}  // namespace

absl::StatusOr<std::string> RenderTemplate(const std::string& source,
                                           const TemplateVariables& variables) {
  NH_ASSIGN_OR_RETURN(const ScannedTemplate scanned, Check(source, variables));
  std::string rendered;
  std::size_t copied = 0;
  for (const TemplateTag& tag : scanned.tags) {
    const bool is_variable = tag.kind == TemplateTag::Kind::kVariable;
    const auto line = is_variable ? std::nullopt : IndentBefore(source, tag.begin);
    const auto line_end = line ? LineEndAfter(source, tag.end) : std::nullopt;
    // A comment or a change of delimiters that is alone on its line is removed with the line, so
    // that "#cloud-config" can come first.
    rendered.append(source, copied, (line_end ? *line : tag.begin) - copied);
    if (is_variable) rendered += variables.at(tag.text);
    copied = line_end.value_or(tag.end);
  }
  rendered.append(source, copied);
  if (rendered.size() > kMaxTemplateBytes) {
    return base::InvalidArgument(
        "the rendered template is larger than 1 MiB, the limit of a Secret");
  }
  return rendered;
}

bool UsesVariable(const std::string& source, std::string_view name) {
  const ScannedTemplate scanned = ScanTemplate(source);
  return std::any_of(scanned.tags.begin(), scanned.tags.end(), [&](const TemplateTag& tag) {
    return tag.kind == TemplateTag::Kind::kVariable && tag.text == name;
  });
}

}  // namespace nomad_harvester::harvester
