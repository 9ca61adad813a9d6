// SPDX-License-Identifier: Apache-2.0
#include "template_scanner.h"

#include <algorithm>
#include <optional>

#include "nomad_harvester/base/parse.h"

namespace nomad_harvester::harvester {
namespace {

using base::TrimAsciiSpace;

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
    // The library would treat {{{=…}}} as a change of delimiters.
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

}  // namespace

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

std::string WithoutStandaloneLines(std::string_view source, const ScannedTemplate& scanned) {
  std::string result;
  std::size_t copied = 0;
  for (const TemplateTag& tag : scanned.tags) {
    if (tag.kind != TemplateTag::Kind::kComment && tag.kind != TemplateTag::Kind::kDelimiters) {
      continue;
    }
    const auto indent = IndentBefore(source, tag.begin);
    const auto line_end = LineEndAfter(source, tag.end);
    if (!indent || !line_end) continue;
    result += source.substr(copied, *indent - copied);
    result += source.substr(tag.begin, tag.end - tag.begin);
    copied = *line_end;
  }
  result += source.substr(copied);
  return result;
}

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

}  // namespace nomad_harvester::harvester
