// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/hcl/document.h"

#include <algorithm>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"

#include "cursor.h"

namespace nomad_harvester::hcl {

absl::StatusOr<Body> ReadDocument(const Source& source, const std::vector<BlockSchema>& blocks,
                                  std::vector<std::size_t>* jsonencodes) {
  const std::string name = base::AsciiLower(source.name());
  if (name.ends_with(".hcl")) return ReadNative(source, jsonencodes);
  if (name.ends_with(".json")) return ReadJson(source, blocks);
  return base::InvalidArgument(source.name() +
                               ": the agent reads files whose names end with .hcl or .json only");
}

const Argument* FindArgument(const Body& body, std::string_view name) {
  const auto found = std::find_if(body.arguments.begin(), body.arguments.end(),
                                  [&](const Argument& argument) { return argument.name == name; });
  return found == body.arguments.end() ? nullptr : &*found;
}

std::optional<std::string> TextOf(const Value& value) {
  switch (value.kind) {
    case Value::Kind::kBool:
    case Value::Kind::kNumber:
    case Value::Kind::kString:
      return value.text;
    default:
      return std::nullopt;
  }
}

}  // namespace nomad_harvester::hcl
