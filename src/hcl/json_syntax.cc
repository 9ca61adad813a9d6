// SPDX-License-Identifier: Apache-2.0
// Reads the JSON syntax (hashicorp/hcl:json/spec.md). Texts are taken literally, because the agent
// does not evaluate them (json/structure.go, expression.Value without a context).
#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/status.h"

#include "cursor.h"
#include "nlohmann/json.hpp"

namespace nomad_harvester::hcl {
namespace {

class JsonReader {
 public:
  explicit JsonReader(const Source& source) : cursor_(source) {}

  absl::StatusOr<Body> File(const std::vector<BlockSchema>& blocks) {
    if (cursor_.LooksAt("\xef\xbb\xbf")) {
      return cursor_.Error("the file begins with a byte order mark; save it as UTF-8 without one");
    }
    NH_ASSIGN_OR_RETURN(const Value document, ReadValue());
    SkipSpace();
    if (!cursor_.AtEnd()) return cursor_.Error("the file goes on behind its JSON value");
    const auto parts = ObjectsOf(document);
    if (!parts.has_value() || document.kind == Value::Kind::kNull) {
      return cursor_.Error(document.offset, "expected an object, or a list of objects");
    }
    Body body;
    for (const Value* part : *parts) NH_RETURN_IF_ERROR(AddTo(&body, *part, blocks));
    return body;
  }

 private:
  void SkipSpace() {
    while (!cursor_.AtEnd() &&
           std::string_view(" \t\r\n").find(cursor_.Peek()) != std::string_view::npos) {
      cursor_.Skip(1);
    }
  }

  absl::StatusOr<Value> ReadValue() {
    const Cursor::Level level(&cursor_);
    NH_RETURN_IF_ERROR(level.Reached());
    SkipSpace();
    if (cursor_.LooksAt("{")) return ReadObject();
    if (cursor_.LooksAt("[")) return ReadList();
    if (cursor_.LooksAt("\"")) {
      const std::size_t start = cursor_.at();
      NH_ASSIGN_OR_RETURN(std::string text, ReadText());
      return StringValue(cursor_, start, std::move(text));
    }
    if (cursor_.LooksAt("-") || IsDigit(cursor_.Peek())) return ReadNumber();
    return ReadWord();
  }

  absl::StatusOr<Value> ReadWord() {
    Value value;
    value.offset = cursor_.at();
    for (const std::string_view word : {"true", "false", "null"}) {
      if (!cursor_.Eat(word)) continue;
      const char next = cursor_.Peek();
      if ((next >= 'a' && next <= 'z') || (next >= 'A' && next <= 'Z') || next == '_') break;
      if (word != "null") {
        value.kind = Value::Kind::kBool;
        value.text = word;
      }
      return value;
    }
    return cursor_.Error(value.offset, "expected a JSON value");
  }

  absl::StatusOr<Value> ReadNumber() {
    const std::size_t start = cursor_.at();
    const std::string_view rest = cursor_.Rest();
    const std::string_view token =
        rest.substr(0, std::min(rest.find_first_not_of("+-.0123456789eE"), rest.size()));
    const bool negative = token.starts_with('-');
    const std::string_view digits = token.substr(negative ? 1 : 0);
    // JSON allows neither leading zeros nor a point without digits after it.
    const std::size_t point = std::min(digits.find('.'), digits.size());
    const bool odd =
        (digits.size() > 1 && digits[0] == '0' && IsDigit(digits[1])) ||
        (point < digits.size() && (point + 1 == digits.size() || !IsDigit(digits[point + 1])));
    std::optional<std::string> text = odd ? std::nullopt : CanonicalNumber(digits);
    if (!text.has_value()) return cursor_.Error("this is no number that can be read here");
    Value value;
    value.kind = Value::Kind::kNumber;
    value.text = (negative ? "-" : "") + *text;
    value.offset = start;
    cursor_.Skip(token.size());
    return value;
  }

  absl::StatusOr<Value> ReadList() {
    Value list;
    list.kind = Value::Kind::kList;
    list.offset = cursor_.at();
    cursor_.Skip(1);
    SkipSpace();
    if (cursor_.Eat("]")) return list;
    while (true) {
      NH_ASSIGN_OR_RETURN(Value item, ReadValue());
      list.items.push_back(std::move(item));
      SkipSpace();
      if (cursor_.Eat("]")) return list;
      if (!cursor_.Eat(",")) return cursor_.Error("expected a comma or \"]\"");
    }
  }

  // Keeps every member, because two blocks of a type are two members with the same name.
  absl::StatusOr<Value> ReadObject() {
    Value object;
    object.kind = Value::Kind::kObject;
    object.offset = cursor_.at();
    cursor_.Skip(1);
    SkipSpace();
    if (cursor_.Eat("}")) return object;
    while (true) {
      SkipSpace();
      const std::size_t start = cursor_.at();
      if (!cursor_.LooksAt("\"")) return cursor_.Error("expected a name in double quotes");
      NH_ASSIGN_OR_RETURN(std::string name, ReadText());
      SkipSpace();
      const Cursor::InValueOf in_value(&cursor_, name);
      if (!cursor_.Eat(":")) return cursor_.Error("expected a colon and a value");
      NH_ASSIGN_OR_RETURN(Value value, ReadValue());
      object.members.push_back({std::move(name), std::move(value), start});
      if (object.members.size() > kMaxEntries) return cursor_.Error(object.offset, kTooMany);
      SkipSpace();
      if (cursor_.Eat("}")) return object;
      if (!cursor_.Eat(",")) return cursor_.Error("expected a comma or \"}\"");
    }
  }

  absl::StatusOr<std::string> ReadText() {
    const std::string_view rest = cursor_.Rest();
    std::size_t end = 1;
    while (end < rest.size() && rest[end] != '"') end += rest[end] == '\\' ? 2 : 1;
    if (end >= rest.size()) return cursor_.Error("this text is not closed");
    const auto text = base::ParseJson(rest.substr(0, end + 1), "the text");
    if (!text.ok()) {
      return cursor_.Error(
          "this text has an unknown escape, or a character that cannot be or must be escaped");
    }
    cursor_.Skip(end + 1);
    return text->get<std::string>();
  }

  // Returns an object, the objects of a list, or nothing for null; nullopt for anything else.
  static std::optional<std::vector<const Value*>> ObjectsOf(const Value& value) {
    std::vector<const Value*> objects;
    if (value.kind == Value::Kind::kNull) return objects;
    if (value.kind == Value::Kind::kObject) objects.push_back(&value);
    for (const Value& item : value.items) {
      if (item.kind != Value::Kind::kObject) return std::nullopt;
      objects.push_back(&item);
    }
    if (objects.empty() && value.kind != Value::Kind::kList) return std::nullopt;
    return objects;
  }

  absl::Status AddTo(Body* body, const Value& object, const std::vector<BlockSchema>& blocks) {
    for (const Argument& member : object.members) {
      if (member.name == "//") continue;  // a comment
      const auto schema = std::find_if(blocks.begin(), blocks.end(), [&](const BlockSchema& block) {
        return block.type == member.name;
      });
      if (schema != blocks.end()) {
        Block block;
        block.type = member.name;
        block.offset = member.offset;
        NH_RETURN_IF_ERROR(AddBlocks(body, *schema, block, member.value));
      } else if (FindArgument(*body, member.name) != nullptr) {
        return cursor_.Error(member.offset, member.name + " is set twice; remove one of them");
      } else {
        NH_RETURN_IF_ERROR(CheckMembers(member.value));
        body->arguments.push_back(member);
      }
    }
    return absl::OkStatus();
  }

  // Adds the blocks in `value`; `head` has their first labels. The value consists of objects of
  // objects, one level for each missing label, and then the body.
  absl::Status AddBlocks(Body* body, const BlockSchema& schema, const Block& head,
                         const Value& value) {
    const auto objects = ObjectsOf(value);
    if (!objects.has_value()) {
      return cursor_.Error(value.offset, "expected an object, or a list of objects, for block " +
                                             std::string(schema.type));
    }
    const bool labelled = head.labels.size() == static_cast<std::size_t>(schema.labels);
    bool any = labelled;
    for (const Value* object : *objects) {
      if (labelled) {
        Block block = head;
        NH_RETURN_IF_ERROR(AddTo(&block.body, *object, schema.blocks));
        body->blocks.push_back(std::move(block));
        continue;
      }
      for (const Argument& member : object->members) {
        any = true;
        Block block = head;
        block.labels.push_back(member.name);
        block.offset = member.offset;
        NH_RETURN_IF_ERROR(AddBlocks(body, schema, block, member.value));
      }
    }
    if (any) return absl::OkStatus();
    return cursor_.Error(value.offset, "block " + std::string(schema.type) + " needs a label");
  }

  absl::Status CheckMembers(const Value& value) {
    for (const Value& item : value.items) NH_RETURN_IF_ERROR(CheckMembers(item));
    std::set<std::string_view> names;
    for (const Argument& member : value.members) {
      if (!names.insert(member.name).second) {
        return cursor_.Error(member.offset, member.name + " is set twice; remove one of them");
      }
      NH_RETURN_IF_ERROR(CheckMembers(member.value));
    }
    return absl::OkStatus();
  }

  Cursor cursor_;
};

}  // namespace

absl::StatusOr<Body> ReadJson(const Source& source, const std::vector<BlockSchema>& blocks) {
  return JsonReader(source).File(blocks);
}

}  // namespace nomad_harvester::hcl
