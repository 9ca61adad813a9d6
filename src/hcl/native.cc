// SPDX-License-Identifier: Apache-2.0
// Reads the native syntax (hashicorp/hcl:hclsyntax/spec.md), from left to right without tokens.
#include <algorithm>
#include <map>
#include <utility>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/status.h"

#include "cursor.h"
#include "nlohmann/json.hpp"

namespace nomad_harvester::hcl {
namespace {

// Says whether a line's end is white space, as between brackets, or ends the current item.
enum class LineEnd { kEnds, kIsSpace };

constexpr char kNotComputed[] =
    "an expression that would have to be computed is not read here; write its value";
constexpr char kUnknownName[] =
    "the agent knows no variables in its files, and no function but jsonencode in policies; a text "
    "is written in double quotes";
constexpr std::string_view kJsonencode = "jsonencode";

bool IsNameStart(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsNamePart(char c) { return IsNameStart(c) || IsDigit(c) || c == '-'; }

// Writes a string as Go's encoding/json does.
std::string JsonString(const std::string& text) {
  std::string json;
  for (const char c : base::DumpJson(nlohmann::json(text))) {
    const bool escaped = c == '<' || c == '>' || c == '&';
    json += escaped ? (c == '<' ? "\\u003c" : c == '>' ? "\\u003e" : "\\u0026") : std::string(1, c);
  }
  return json;
}

// Like zclconf/go-cty:cty/json/marshal.go: without spaces, members sorted by name.
std::string JsonOf(const Value& value) {
  std::string json;
  switch (value.kind) {
    case Value::Kind::kNull:
      return "null";
    case Value::Kind::kBool:
    case Value::Kind::kNumber:
      return value.text;
    case Value::Kind::kString:
      return JsonString(value.text);
    case Value::Kind::kList:
      for (const Value& item : value.items) json += (json.empty() ? "" : ",") + JsonOf(item);
      return "[" + json + "]";
    case Value::Kind::kObject:
      break;
  }
  std::map<std::string_view, const Value*> members;
  for (const Argument& member : value.members) members[member.name] = &member.value;
  for (const auto& [name, member] : members) {
    json += (json.empty() ? "" : ",") + JsonString(std::string(name)) + ":" + JsonOf(*member);
  }
  return "{" + json + "}";
}

class NativeReader {
 public:
  NativeReader(const Source& source, std::vector<std::size_t>* jsonencodes)
      : cursor_(source), jsonencodes_(jsonencodes) {}

  absl::StatusOr<Body> File() {
    Body body;
    NH_RETURN_IF_ERROR(ReadBody(&body, std::nullopt));
    return body;
  }

 private:
  // Skips blanks and comments. A line comment ends before its line's end.
  absl::Status SkipSpace(LineEnd line_end) {
    while (!cursor_.AtEnd()) {
      if (cursor_.LooksAt(" ") || cursor_.LooksAt("\t")) {
        cursor_.Skip(1);
      } else if (line_end == LineEnd::kIsSpace && AtLineEnd()) {
        EatLineEnd();
      } else if (cursor_.LooksAt("#") || cursor_.LooksAt("//")) {
        cursor_.Skip(std::min(cursor_.Rest().find('\n'), cursor_.Rest().size()));
      } else if (cursor_.LooksAt("/*")) {
        const std::size_t end = cursor_.Rest().find("*/", 2);
        if (end == std::string_view::npos) return cursor_.Error("this comment is not closed");
        cursor_.Skip(end + 2);
      } else {
        break;
      }
    }
    return absl::OkStatus();
  }

  bool AtLineEnd() const { return cursor_.LooksAt("\n") || cursor_.LooksAt("\r\n"); }
  bool EatLineEnd() { return cursor_.Eat("\n") || cursor_.Eat("\r\n"); }

  // Returns an empty string if there is no name.
  std::string TakeName() {
    std::string name;
    if (!IsNameStart(cursor_.Peek())) return name;
    while (IsNamePart(cursor_.Peek())) {
      name += cursor_.Peek();
      cursor_.Skip(1);
    }
    return name;
  }

  // `open`: the position of the block's brace; the file's body has none.
  absl::Status ReadBody(Body* body, std::optional<std::size_t> open) {
    const Cursor::Level level(&cursor_);
    NH_RETURN_IF_ERROR(level.Reached());
    while (true) {
      NH_RETURN_IF_ERROR(SkipSpace(LineEnd::kIsSpace));
      if (cursor_.AtEnd()) {
        return open.has_value() ? cursor_.Error(*open, "this block is not closed")
                                : absl::OkStatus();
      }
      if (open.has_value() && cursor_.Eat("}")) return absl::OkStatus();
      NH_RETURN_IF_ERROR(ReadItem(body));
      NH_RETURN_IF_ERROR(ReadEndOfItem());
    }
  }

  absl::Status ReadEndOfItem() {
    NH_RETURN_IF_ERROR(SkipSpace(LineEnd::kEnds));
    if (cursor_.AtEnd() || EatLineEnd()) return absl::OkStatus();
    return cursor_.Error(cursor_.LooksAt(",")
                             ? "arguments are separated by line ends, not by commas"
                             : "an argument or a block ends with its line; a text is written in "
                               "double quotes");
  }

  absl::Status ReadItem(Body* body) {
    const std::size_t start = cursor_.at();
    std::string name = TakeName();
    if (name.empty()) {
      return cursor_.Error(cursor_.LooksAt("\"")
                               ? "the name of an argument or a block is written without quotes"
                               : "expected an argument (name = value) or a block (name { … })");
    }
    NH_RETURN_IF_ERROR(SkipSpace(LineEnd::kEnds));
    if (cursor_.LooksAt("=")) return ReadArgument(body, std::move(name), start);
    Block block;
    block.type = std::move(name);
    block.offset = start;
    NH_RETURN_IF_ERROR(ReadBlock(&block));
    body->blocks.push_back(std::move(block));
    return absl::OkStatus();
  }

  absl::Status ReadArgument(Body* body, std::string name, std::size_t start) {
    if (FindArgument(*body, name) != nullptr) {
      return cursor_.Error(start, name + " is set twice; remove one of them");
    }
    cursor_.Skip(1);
    const Cursor::InValueOf in_value(&cursor_, name);
    NH_RETURN_IF_ERROR(SkipSpace(LineEnd::kEnds));
    NH_ASSIGN_OR_RETURN(Value value, ReadValue(LineEnd::kEnds));
    body->arguments.push_back({std::move(name), std::move(value), start});
    if (body->arguments.size() > kMaxEntries) return cursor_.Error(start, kTooMany);
    return absl::OkStatus();
  }

  // Starts after the type.
  absl::Status ReadBlock(Block* block) {
    while (!cursor_.LooksAt("{")) {
      if (cursor_.LooksAt("\"")) {
        NH_ASSIGN_OR_RETURN(std::string label, ReadLabel());
        block->labels.push_back(std::move(label));
      } else if (IsNameStart(cursor_.Peek())) {
        block->labels.push_back(TakeName());
      } else {
        return cursor_.Error("expected \"=\" and a value, or a block's label or \"{\"");
      }
      NH_RETURN_IF_ERROR(SkipSpace(LineEnd::kEnds));
    }
    const std::size_t open = cursor_.at();
    cursor_.Skip(1);
    NH_RETURN_IF_ERROR(SkipSpace(LineEnd::kEnds));
    if (cursor_.AtEnd() || AtLineEnd() || cursor_.LooksAt("}")) {
      return ReadBody(&block->body, open);
    }
    return ReadOneLineBody(&block->body);
  }

  // A block on one line has a single argument.
  absl::Status ReadOneLineBody(Body* body) {
    constexpr char kRule[] =
        "a block on one line has a single argument: name { argument = value }; write each on a "
        "line of its own";
    const std::size_t start = cursor_.at();
    std::string name = TakeName();
    NH_RETURN_IF_ERROR(SkipSpace(LineEnd::kEnds));
    if (name.empty() || !cursor_.LooksAt("=")) return cursor_.Error(start, kRule);
    NH_RETURN_IF_ERROR(ReadArgument(body, std::move(name), start));
    NH_RETURN_IF_ERROR(SkipSpace(LineEnd::kEnds));
    return cursor_.Eat("}") ? absl::OkStatus() : cursor_.Error(kRule);
  }

  absl::StatusOr<std::string> ReadLabel() {
    NH_ASSIGN_OR_RETURN(const TemplateParts parts, ReadQuoted());
    for (const TemplatePart& part : parts) {
      if (part.value.has_value()) {
        return cursor_.Error(part.value->offset, "a label is a text without ${…}");
      }
    }
    return parts.empty() ? std::string() : parts.front().text;
  }

  // Reads a value, and checks that nothing follows that would compute another one from it.
  absl::StatusOr<Value> ReadValue(LineEnd line_end) {
    const Cursor::Level level(&cursor_);
    NH_RETURN_IF_ERROR(level.Reached());
    NH_ASSIGN_OR_RETURN(Value value, ReadTerm(line_end));
    NH_RETURN_IF_ERROR(SkipSpace(line_end));
    constexpr std::string_view kOperators = ".[(*/%+-?<>&|!";
    if (!cursor_.AtEnd() &&
        (kOperators.find(cursor_.Peek()) != std::string_view::npos || cursor_.LooksAt("=="))) {
      return cursor_.Error(kNotComputed);
    }
    return value;
  }

  absl::StatusOr<Value> ReadTerm(LineEnd line_end) {
    const std::size_t start = cursor_.at();
    if (cursor_.LooksAt("\"") || cursor_.LooksAt("<<")) return ReadText();
    if (cursor_.LooksAt("[")) return ReadList();
    if (cursor_.LooksAt("{")) return ReadObject();
    if (cursor_.LooksAt("(")) return ReadInParentheses();
    if (cursor_.LooksAt("-")) return ReadNegative(line_end);
    if (cursor_.LooksAt("!")) return cursor_.Error(kNotComputed);
    if (IsDigit(cursor_.Peek())) return ReadNumber();
    Value value;
    value.offset = start;
    const std::string name = TakeName();
    if (name.empty()) {
      return cursor_.Error(cursor_.LooksAt("'") ? "a text is written in double quotes"
                                                : "expected a value");
    }
    if (name == "true" || name == "false") {
      value.kind = Value::Kind::kBool;
      value.text = name;
    } else if (name == kJsonencode && jsonencodes_ != nullptr && cursor_.LooksAt("(")) {
      jsonencodes_->push_back(start);
      NH_ASSIGN_OR_RETURN(const Value argument, ReadInParentheses());
      return StringValue(cursor_, start, JsonOf(argument));
    } else if (name != "null") {
      return cursor_.Error(start, kUnknownName);
    }
    return value;
  }

  absl::StatusOr<Value> ReadNumber() {
    const std::string_view rest = cursor_.Rest();
    // Longest match (hashicorp/hcl:hclsyntax/scan_tokens.rl, NumberLit).
    std::size_t length = 0;
    for (std::size_t i = 0; i < rest.size();) {
      if (IsDigit(rest[i])) {
        length = ++i;
      } else if (rest[i] == '.') {
        ++i;
      } else if (rest[i] == 'e' || rest[i] == 'E') {
        std::size_t digit = i + 1;
        if (digit < rest.size() && (rest[digit] == '+' || rest[digit] == '-')) ++digit;
        if (digit >= rest.size() || !IsDigit(rest[digit])) break;
        length = i = digit + 1;
      } else {
        break;
      }
    }
    std::optional<std::string> text = CanonicalNumber(rest.substr(0, length));
    if (!text.has_value()) return cursor_.Error("this is no number that can be read here");
    Value value;
    value.kind = Value::Kind::kNumber;
    value.text = *std::move(text);
    value.offset = cursor_.at();
    cursor_.Skip(length);
    return value;
  }

  absl::StatusOr<Value> ReadNegative(LineEnd line_end) {
    const Cursor::Level level(&cursor_);
    NH_RETURN_IF_ERROR(level.Reached());
    const std::size_t start = cursor_.at();
    cursor_.Skip(1);
    NH_RETURN_IF_ERROR(SkipSpace(line_end));
    NH_ASSIGN_OR_RETURN(Value value, ReadTerm(line_end));
    if (value.kind != Value::Kind::kNumber) return cursor_.Error(start, kNotComputed);
    // Applies to zero, too: the agent writes "-0".
    value.text = value.text.starts_with('-') ? value.text.substr(1) : "-" + value.text;
    value.offset = start;
    return value;
  }

  absl::StatusOr<Value> ReadInParentheses() {
    const std::size_t open = cursor_.at();
    cursor_.Skip(1);
    NH_RETURN_IF_ERROR(SkipSpace(LineEnd::kIsSpace));
    NH_ASSIGN_OR_RETURN(Value value, ReadValue(LineEnd::kIsSpace));
    if (!cursor_.Eat(")")) return cursor_.Error(open, "this parenthesis is not closed");
    value.offset = open;
    return value;
  }

  absl::StatusOr<Value> ReadList() {
    Value list;
    list.kind = Value::Kind::kList;
    list.offset = cursor_.at();
    cursor_.Skip(1);
    while (true) {
      NH_RETURN_IF_ERROR(SkipSpace(LineEnd::kIsSpace));
      if (cursor_.Eat("]")) return list;
      if (cursor_.AtEnd()) return cursor_.Error(list.offset, "this list is not closed");
      NH_ASSIGN_OR_RETURN(Value item, ReadValue(LineEnd::kIsSpace));
      list.items.push_back(std::move(item));
      if (cursor_.Eat("]")) return list;
      if (cursor_.AtEnd()) return cursor_.Error(list.offset, "this list is not closed");
      if (!cursor_.Eat(",")) return cursor_.Error("the items of a list are separated by commas");
    }
  }

  absl::StatusOr<Value> ReadObject() {
    Value object;
    object.kind = Value::Kind::kObject;
    object.offset = cursor_.at();
    cursor_.Skip(1);
    while (true) {
      NH_RETURN_IF_ERROR(SkipSpace(LineEnd::kIsSpace));
      if (cursor_.Eat("}")) return object;
      if (cursor_.AtEnd()) return cursor_.Error(object.offset, "this map is not closed");
      NH_RETURN_IF_ERROR(ReadMember(&object));
      if (cursor_.Eat("}")) return object;
      if (!cursor_.Eat(",") && !EatLineEnd()) {
        return cursor_.AtEnd() ? cursor_.Error(object.offset, "this map is not closed")
                               : cursor_.Error(
                                     "expected a comma or the line's end before the "
                                     "next entry of this map");
      }
    }
  }

  absl::Status ReadMember(Value* object) {
    const std::size_t start = cursor_.at();
    NH_ASSIGN_OR_RETURN(std::string name, ReadMemberName(object->members.empty()));
    NH_RETURN_IF_ERROR(SkipSpace(LineEnd::kEnds));
    const bool separated =
        !cursor_.LooksAt("==") && !cursor_.LooksAt("::") && (cursor_.Eat("=") || cursor_.Eat(":"));
    if (!separated) return cursor_.Error("expected \"=\" and a value");
    const Cursor::InValueOf in_value(&cursor_, name);
    NH_RETURN_IF_ERROR(SkipSpace(LineEnd::kEnds));
    NH_ASSIGN_OR_RETURN(Value value, ReadValue(LineEnd::kEnds));
    // The last one with a name wins, as for the agent.
    std::erase_if(object->members, [&](const Argument& old) { return old.name == name; });
    object->members.push_back({std::move(name), std::move(value), start});
    if (object->members.size() > kMaxEntries) return cursor_.Error(start, kTooMany);
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> ReadMemberName(bool is_first) {
    const std::size_t start = cursor_.at();
    if (IsNameStart(cursor_.Peek())) {
      std::string name = TakeName();
      if (is_first && name == "for") return cursor_.Error(start, kNotComputed);
      return name;
    }
    NH_ASSIGN_OR_RETURN(const Value key, ReadValue(LineEnd::kEnds));
    std::optional<std::string> name = TextOf(key);
    if (!name.has_value()) return cursor_.Error(start, "this is no name of an entry");
    return *std::move(name);
  }

  absl::StatusOr<Value> ReadText() {
    const std::size_t start = cursor_.at();
    absl::StatusOr<TemplateParts> parts = cursor_.LooksAt("\"") ? ReadQuoted() : ReadHeredoc();
    if (!parts.ok()) return parts.status();
    if (parts->size() == 1 && parts->front().value.has_value()) return *parts->front().value;
    std::string text;
    for (const TemplatePart& part : *parts) {
      if (part.value.has_value()) {
        const std::optional<std::string> inserted = TextOf(*part.value);
        if (!inserted.has_value()) {
          return cursor_.Error(part.value->offset, "this value is no part of a text");
        }
        text += *inserted;
      } else {
        text += part.text;
      }
    }
    return StringValue(cursor_, start, std::move(text));
  }

  absl::StatusOr<TemplateParts> ReadQuoted() {
    const std::size_t open = cursor_.at();
    cursor_.Skip(1);
    TemplateParts parts;
    while (!cursor_.Eat("\"")) {
      if (cursor_.AtEnd()) return cursor_.Error(open, "this text is not closed");
      if (AtLineEnd() || cursor_.LooksAt("\r")) {
        return cursor_.Error(open, "missing closing quote (use <<EOF for several lines)");
      }
      if (cursor_.LooksAt("\\")) {
        NH_RETURN_IF_ERROR(ReadEscape(LiteralOf(&parts)));
      } else {
        NH_RETURN_IF_ERROR(ReadTemplateCharacter(&parts));
      }
    }
    return parts;
  }

  absl::Status ReadEscape(std::string* text) {
    const std::size_t start = cursor_.at();
    cursor_.Skip(1);
    const char selector = cursor_.Peek();
    cursor_.Skip(cursor_.AtEnd() ? 0 : 1);
    switch (selector) {
      case 'n':
        text->push_back('\n');
        return absl::OkStatus();
      case 'r':
        text->push_back('\r');
        return absl::OkStatus();
      case 't':
        text->push_back('\t');
        return absl::OkStatus();
      case '"':
      case '\\':
        text->push_back(selector);
        return absl::OkStatus();
      case 'u':
      case 'U': {
        NH_ASSIGN_OR_RETURN(const std::uint32_t code, cursor_.TakeHex(selector == 'u' ? 4 : 8));
        if (AppendCharacter(code, text)) return absl::OkStatus();
        return cursor_.Error(start, "there is no such character");
      }
      default:
        return cursor_.Error(start,
                             "unknown escape; known are \\n \\r \\t \\\" \\\\ \\uNNNN \\UNNNNNNNN");
    }
  }

  // Reads the next character of a template or its escape: "${" and "%{" begin a sequence, and are
  // written "$${" and "%%{".
  absl::Status ReadTemplateCharacter(TemplateParts* parts) {
    for (const std::string_view mark : {"${", "%{"}) {
      if (cursor_.LooksAt(std::string(1, mark[0]) + std::string(mark))) {
        cursor_.Skip(3);
        LiteralOf(parts)->append(mark);
        return absl::OkStatus();
      }
    }
    if (cursor_.LooksAt("%{")) {
      return cursor_.Error("a template directive is not read here; if it is text, write %%{");
    }
    if (cursor_.LooksAt("${")) return ReadInterpolation(parts);
    return cursor_.TakeCharacter(LiteralOf(parts));
  }

  absl::Status ReadInterpolation(TemplateParts* parts) {
    const std::size_t start = cursor_.at();
    cursor_.Skip(2);
    if (cursor_.LooksAt("~")) return cursor_.Error("the trim mark ~ is not read here");
    NH_RETURN_IF_ERROR(SkipSpace(LineEnd::kIsSpace));
    // Most often this is a variable of a shell or a template.
    if (IsNameStart(cursor_.Peek()) && !cursor_.LooksAt("true") && !cursor_.LooksAt("false") &&
        !cursor_.LooksAt("null") && (jsonencodes_ == nullptr || !cursor_.LooksAt(kJsonencode))) {
      return cursor_.Error(start,
                           "the agent knows no variables and no functions in its files; if this is "
                           "text, write $${");
    }
    NH_ASSIGN_OR_RETURN(Value value, ReadValue(LineEnd::kIsSpace));
    if (!cursor_.Eat("}")) return cursor_.Error(start, "this ${ is not closed by a }");
    value.offset = start;
    TemplatePart part;
    part.value = std::move(value);
    parts->push_back(std::move(part));
    return absl::OkStatus();
  }

  absl::StatusOr<TemplateParts> ReadHeredoc() {
    const std::size_t open = cursor_.at();
    cursor_.Skip(2);
    const bool flush = cursor_.Eat("-");
    const std::string marker = TakeName();
    if (marker.empty() || !EatLineEnd()) {
      return cursor_.Error(open,
                           "a text of several lines begins with << or <<-, a marker, and the "
                           "line's end");
    }
    TemplateParts parts;
    while (!AtMarker(marker)) {
      TemplatePart line;
      line.begins_line = true;
      parts.push_back(std::move(line));
      while (!AtLineEnd()) {
        if (cursor_.AtEnd()) {
          return cursor_.Error(open, "this text is not closed: " + marker +
                                         " must stand alone on a line that ends with a line end");
        }
        if (cursor_.LooksAt("\r")) return cursor_.Error("a carriage return without a line's end");
        NH_RETURN_IF_ERROR(ReadTemplateCharacter(&parts));
      }
      LiteralOf(&parts)->append(cursor_.LooksAt("\n") ? "\n" : "\r\n");
      EatLineEnd();
    }
    if (flush) RemoveIndentation(&parts);
    return parts;
  }

  // Moves past the marker if it is alone on this line, but not past the line's end.
  bool AtMarker(std::string_view marker) {
    const std::size_t end = cursor_.Rest().find('\n');
    if (end == std::string_view::npos) return false;
    std::string_view line = cursor_.Rest().substr(0, end);
    while (const std::size_t length = SpaceLength(line)) line.remove_prefix(length);
    if (!line.starts_with(marker)) return false;
    line.remove_prefix(marker.size());
    while (const std::size_t length = SpaceLength(line)) line.remove_prefix(length);
    if (!line.empty()) return false;
    cursor_.Skip(end > 0 && cursor_.Rest()[end - 1] == '\r' ? end - 1 : end);
    return true;
  }

  Cursor cursor_;
  std::vector<std::size_t>* const jsonencodes_;
};

}  // namespace

absl::StatusOr<Body> ReadNative(const Source& source, std::vector<std::size_t>* jsonencodes) {
  return NativeReader(source, jsonencodes).File();
}

}  // namespace nomad_harvester::hcl
