// SPDX-License-Identifier: Apache-2.0
// Renders Mustache templates that contain only variables, comments and changes of delimiters
// (mustache(5)); sections, partials and lambdas are refused. A test compares with a library for all
// of Mustache.
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
    "To keep other {{ }} (Jinja, consul-template, Nomad), change Mustache's delimiters before "
    "them: "
    "{{=<% %>=}}, then <%vm_name%>.";

struct TemplateTag {
  enum class Kind { kVariable, kComment, kDelimiters, kUnsupported, kUnreadable };
  Kind kind = Kind::kVariable;
  std::string text{};     // a variable's name, the problem if unreadable, or the tag's contents
  std::size_t begin = 0;  // of the opening delimiter
  std::size_t end = 0;    // after the closing one
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
  using Kind = TemplateTag::Kind;
  const char first = contents.empty() ? '\0' : contents.front();
  Kind kind = Kind::kVariable;
  if (triple) {
    // kainjow's library treats {{{=…}}} as a change of delimiters.
    if (first == '=') kind = Kind::kUnsupported;
  } else if (first == '!') {
    kind = Kind::kComment;
  } else if (first == '=') {
    kind = Kind::kDelimiters;
  } else if (std::string_view("#^/>").find(first) != std::string_view::npos) {
    kind = Kind::kUnsupported;
  } else if (first == '&') {
    contents = TrimAsciiSpace(contents.substr(1));
  }
  return {.kind = kind, .text = std::string(contents)};
}

// The start of the tag's line if only spaces and tabs precede the tag; nullopt otherwise.
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

// In the order of the text, up to the first one that is unreadable: a tag without end, or
// delimiters.
std::vector<TemplateTag> ScanTemplate(std::string_view source) {
  std::vector<TemplateTag> tags;
  Delimiters delimiters;
  std::size_t position = 0;
  while ((position = source.find(delimiters.open, position)) != std::string_view::npos) {
    std::size_t contents = position + delimiters.open.size();
    const bool triple =
        delimiters.AreDefault() && contents < source.size() && source[contents] == '{';
    if (triple) ++contents;
    const std::string_view close = triple ? std::string_view("}}}") : delimiters.close;
    const std::size_t end = source.find(close, contents);
    const auto unreadable = [&](std::string why) {
      tags.push_back({TemplateTag::Kind::kUnreadable, std::move(why), position});
      return tags;
    };
    if (end == std::string_view::npos) {
      return unreadable("the tag that begins here is not closed by " + std::string(close));
    }
    const std::string_view text = TrimAsciiSpace(source.substr(contents, end - contents));
    TemplateTag tag = ClassifyTag(text, triple);
    tag.begin = position;
    tag.end = end + close.size();
    if (tag.kind == TemplateTag::Kind::kDelimiters) {
      std::optional<Delimiters> changed = ParseDelimiters(text);
      if (!changed) return unreadable("this change of delimiters cannot be read");
      delimiters = *std::move(changed);
    }
    position = tag.end;
    tags.push_back(std::move(tag));
  }
  return tags;
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

std::string Quote(std::string_view text) {
  std::string shown(text.substr(0, kMaxNameBytes));
  if (text.size() > kMaxNameBytes) shown += "...";
  return base::DumpJson(nlohmann::json(shown));
}

std::string UnknownVariable(const std::string& name, const TemplateVariables& known) {
  std::vector<std::string> names;
  for (const auto& [candidate, value] : known) names.push_back(candidate);
  std::string text = "unknown variable " + Quote(name);
  if (const auto nearest = base::NearestName(name, names)) {
    return text + ", did you mean " + Quote(*nearest) + "?";
  }
  text += "; known variables:";
  for (const std::string& candidate : names) text += " " + candidate;
  return text;
}

std::optional<std::string> FindProblem(const TemplateTag& tag, const TemplateVariables& known) {
  if (tag.kind == TemplateTag::Kind::kUnreadable) return tag.text;
  if (tag.kind == TemplateTag::Kind::kUnsupported) {
    return "sections and partials are not supported: " + Quote(tag.text);
  }
  const bool unknown = tag.kind == TemplateTag::Kind::kVariable && !known.contains(tag.text);
  return unknown ? std::optional(UnknownVariable(tag.text, known)) : std::nullopt;
}

// OK if no tag is a problem.
absl::Status Check(std::string_view source, const std::vector<TemplateTag>& tags,
                   const TemplateVariables& known) {
  std::string text;
  std::size_t problems = 0;
  for (const TemplateTag& tag : tags) {
    const auto problem = FindProblem(tag, known);
    if (!problem || ++problems > kMaxProblems) continue;
    text += DescribePosition(source, tag.begin) + ": " + *problem + "\n";
  }
  if (problems == 0) return absl::OkStatus();
  if (problems > kMaxProblems) text += "and " + std::to_string(problems - kMaxProblems) + " more\n";
  return base::InvalidArgument(text + std::string(kForeignBracesHint));
}

// Variables become their values, unchanged. A comment or a change of delimiters that is alone on
// its line is removed with the line's white space and end, so that "#cloud-config" can be the first
// line.
std::string Render(std::string_view source, const std::vector<TemplateTag>& tags,
                   const TemplateVariables& variables) {
  std::string result;
  std::size_t copied = 0;
  for (const TemplateTag& tag : tags) {
    const bool is_variable = tag.kind == TemplateTag::Kind::kVariable;
    const auto indent = IndentBefore(source, tag.begin);
    const auto line_end = LineEndAfter(source, tag.end);
    const bool with_line = !is_variable && indent && line_end;
    result += source.substr(copied, (with_line ? *indent : tag.begin) - copied);
    if (is_variable) result += variables.at(tag.text);
    copied = with_line ? *line_end : tag.end;
  }
  return result += source.substr(copied);
}

}  // namespace

absl::StatusOr<std::string> RenderTemplate(const std::string& source,
                                           const TemplateVariables& variables) {
  if (source.size() > kMaxTemplateBytes) {
    return base::InvalidArgument("the template is larger than 1 MiB, the limit of a Secret");
  }
  const std::vector<TemplateTag> tags = ScanTemplate(source);
  NH_RETURN_IF_ERROR(Check(source, tags, variables));
  std::string rendered = Render(source, tags, variables);
  if (rendered.size() <= kMaxTemplateBytes) return rendered;
  return base::InvalidArgument("the rendered template is larger than 1 MiB, the limit of a Secret");
}

}  // namespace nomad_harvester::harvester
