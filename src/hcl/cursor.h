// SPDX-License-Identifier: Apache-2.0
// A position in a source, the characters shared by both syntaxes, and texts with embedded values.
// Private to module hcl.
#ifndef NOMAD_HARVESTER_HCL_CURSOR_H_
#define NOMAD_HARVESTER_HCL_CURSOR_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nomad_harvester/hcl/document.h"

namespace nomad_harvester::hcl {

class Cursor {
 public:
  explicit Cursor(const Source& source) : source_(source) {}

  std::size_t at() const { return at_; }
  bool AtEnd() const { return at_ >= source_.text().size(); }
  std::string_view Rest() const { return source_.text().substr(at_); }
  // The character `ahead` positions after the next one; 0 past the end.
  char Peek(std::size_t ahead = 0) const { return ahead < Rest().size() ? Rest()[ahead] : '\0'; }
  bool LooksAt(std::string_view text) const { return Rest().starts_with(text); }
  void Skip(std::size_t bytes) { at_ += bytes; }
  bool Eat(std::string_view text) {
    if (!LooksAt(text)) return false;
    at_ += text.size();
    return true;
  }

  absl::Status Error(std::size_t offset, std::string_view message) const {
    return source_.Error(offset, message,
                         in_secret_ > 0 ? Source::Line::kHidden : Source::Line::kShown);
  }
  absl::Status Error(std::string_view message) const { return Error(at_, message); }

  // Reads a value of the argument with that name; if it may be a secret, errors show no line.
  class InValueOf {
   public:
    InValueOf(Cursor* cursor, std::string_view name)
        : cursor_(cursor), secret_(IsSecretName(name)) {
      cursor_->in_secret_ += secret_ ? 1 : 0;
    }
    ~InValueOf() { cursor_->in_secret_ -= secret_ ? 1 : 0; }
    InValueOf(const InValueOf&) = delete;
    InValueOf& operator=(const InValueOf&) = delete;

   private:
    Cursor* const cursor_;
    const bool secret_;
  };

  // A level of nesting. `Reached` fails if there are more than kMaxDepth.
  class Level {
   public:
    explicit Level(Cursor* cursor) : cursor_(cursor) { ++cursor_->depth_; }
    ~Level() { --cursor_->depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    absl::Status Reached() const;

   private:
    Cursor* const cursor_;
  };

  // Moves one well-formed UTF-8 character from the source to `text`.
  absl::Status TakeCharacter(std::string* text);
  // Consumes `digits` hexadecimal digits and returns their value.
  absl::StatusOr<std::uint32_t> TakeHex(int digits);

 private:
  const Source& source_;
  std::size_t at_ = 0;
  int depth_ = 0;
  int in_secret_ = 0;
};

// The limit for a body or a map, whose names are compared with each other.
inline constexpr std::size_t kMaxEntries = 1000;
inline constexpr char kTooMany[] = "more than 1000 names are not read here";

bool IsDigit(char c);
// Appends the character as UTF-8; false if there is none: a surrogate, or beyond U+10FFFF.
[[nodiscard]] bool AppendCharacter(std::uint32_t code, std::string* text);
// The white space of Go's unicode.IsSpace at the front of `text`, in bytes; 0 if there is none.
std::size_t SpaceLength(std::string_view text);

// A kString of valid UTF-8. An error if it has a combining character, which the agent may replace:
// its strings are in Unicode's normal form C (zclconf/go-cty:cty/value_init.go, NormalizeString).
absl::StatusOr<Value> StringValue(const Cursor& cursor, std::size_t offset, std::string text);

// `jsonencodes` receives the offset of each call of jsonencode; null: that function does not exist.
absl::StatusOr<Body> ReadNative(const Source& source, std::vector<std::size_t>* jsonencodes);
absl::StatusOr<Body> ReadJson(const Source& source, const std::vector<BlockSchema>& blocks);

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

#endif  // NOMAD_HARVESTER_HCL_CURSOR_H_
