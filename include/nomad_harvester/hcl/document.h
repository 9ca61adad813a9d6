// SPDX-License-Identifier: Apache-2.0
// Reads the configuration language of the autoscaler's files, in its native and its JSON syntax, as
// hashicorp/hcl/v2 reads them for the agent (hashicorp/nomad-autoscaler:agent/config/config.go,
// parseFile; policy/file/parse.go, decodeFile). The agent provides no variables and at most one
// function, so every value is a constant.
//
// This reader rejects everything that the agent rejects. It also rejects operators, conditions,
// indexes, "for" and template directives, which would compute a constant; numbers of more than a
// hundred digits; names that are not ASCII; and text with combining characters (U+0300 to U+036F),
// which the agent may replace by others.
#ifndef NOMAD_HARVESTER_HCL_DOCUMENT_H_
#define NOMAD_HARVESTER_HCL_DOCUMENT_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace nomad_harvester::hcl {

// Immutable; safe for concurrent use. Offsets are bytes from the start of the text.
class Source {
 public:
  // `name` is the path shown in messages. A byte order mark is not part of
  // the text, except in JSON, where the agent refuses it.
  Source(std::string name, std::string text);

  const std::string& name() const { return name_; }
  std::string_view text() const { return text_; }

  // Returns "agent.hcl:12:9": line and column, in characters, start at 1.
  std::string Where(std::size_t offset) const;
  // INVALID_ARGUMENT, like a compiler's:
  //   agent.hcl:12:9: a string ends on its line
  //     12 |   driver = "harvester
  //        |            ^
  // Of a longer line the first 160 bytes. No line is shown if it has a name that announces a secret
  // (IsSecretName) or a URL with a login; kHidden is for an offset inside the value of such a name.
  enum class Line { kShown, kHidden };
  absl::Status Error(std::size_t offset, std::string_view message, Line line = Line::kShown) const;

 private:
  std::string name_;
  std::string text_;
};

// True if the value of this argument may be a secret and must not be shown: tokens, passwords,
// keys, headers, cloud-init data. The name of a file with a secret may be shown: true for
// "auth_token", false for "auth_token_file".
bool IsSecretName(std::string_view name);

// Deeper nesting of blocks and values is an error.
inline constexpr int kMaxDepth = 50;

struct Argument;

struct Value {
  enum class Kind { kNull, kBool, kNumber, kString, kList, kObject };
  Kind kind = Kind::kNull;
  // kBool, kNumber and kString, converted to a string as the agent does it: "true", "1.5", "1000"
  // for 1e3.
  std::string text;
  std::vector<Value> items;       // kList
  std::vector<Argument> members;  // kObject
  std::size_t offset = 0;
};

struct Argument {
  std::string name;
  Value value;
  std::size_t offset = 0;
};

struct Block;

// Argument names are unique.
struct Body {
  std::vector<Argument> arguments;
  std::vector<Block> blocks;
};

struct Block {
  std::string type;
  std::vector<std::string> labels;
  Body body;
  std::size_t offset = 0;
};

// In the JSON syntax only a schema distinguishes blocks from arguments.
struct BlockSchema {
  std::string_view type;
  int labels = 0;
  std::vector<BlockSchema> blocks = {};
};

// `source` is JSON if its name ends with ".json", native syntax with ".hcl", an error otherwise.
// `blocks` are the blocks of the top level to read from JSON; the native syntax does not need them.
// INVALID_ARGUMENT, made by Source::Error, for the first mistake. Pure; recursion is bounded by
// kMaxDepth.
//
// With `jsonencodes` the native syntax has the function jsonencode, which
// hashicorp/nomad-autoscaler#1320 adds to policies after 0.5.0; it gets the offset of each call.
absl::StatusOr<Body> ReadDocument(const Source& source, const std::vector<BlockSchema>& blocks,
                                  std::vector<std::size_t>* jsonencodes = nullptr);

// Null if there is none.
const Argument* FindArgument(const Body& body, std::string_view name);
// Returns the text of a string, number or bool; nullopt for the other kinds.
std::optional<std::string> TextOf(const Value& value);
// Returns a decimal number, DIGITS[.[DIGITS]][e[+-]DIGITS], as the agent writes it
// (zclconf/go-cty:cty/convert/conversion_primitive.go, big.Float's Text('f', -1)); nullopt if the
// text is not such a number, or if the agent might round it, because its numbers have 512 bits.
std::optional<std::string> CanonicalNumber(std::string_view text);

}  // namespace nomad_harvester::hcl

#endif  // NOMAD_HARVESTER_HCL_DOCUMENT_H_
