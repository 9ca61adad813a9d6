// SPDX-License-Identifier: Apache-2.0
#include "agent_block.h"

#include <algorithm>
#include <utility>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"

namespace nomad_harvester::cli {
namespace {

absl::Status CheckName(const AgentBlock& in, const std::string& kind, const std::string& name,
                       std::size_t offset, const std::vector<std::string>& known,
                       std::vector<std::string>* warnings) {
  if (std::find(known.begin(), known.end(), name) != known.end()) return absl::OkStatus();
  if (const auto nearest = base::NearestName(name, known); nearest.has_value()) {
    return in.Error(offset, "unknown " + kind + " " + name + "; did you mean " + *nearest + "?");
  }
  if (warnings == nullptr) return in.Error(offset, "unknown " + kind + " " + name);
  warnings->push_back(in.source().Where(offset) + ": unknown " + kind + " " + name +
                      "; it is not read");
  return absl::OkStatus();
}

}  // namespace

std::vector<const hcl::Block*> AgentBlock::BlocksOf(std::string_view type) const {
  std::vector<const hcl::Block*> blocks;
  for (const hcl::Block& block : body_.blocks) {
    if (block.type == type) blocks.push_back(&block);
  }
  return blocks;
}

absl::StatusOr<const hcl::Block*> AgentBlock::OnlyBlock(std::string_view type) const {
  const auto blocks = BlocksOf(type);
  if (blocks.size() > 1) {
    return Error(blocks[1]->offset,
                 "a second block " + std::string(type) + "; there is one at most");
  }
  return blocks.empty() ? nullptr : blocks.front();
}

absl::Status AgentBlock::CheckNames(const std::vector<std::string>& arguments,
                                    const std::vector<std::string>& blocks,
                                    std::vector<std::string>* warnings) const {
  const auto has = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (const hcl::Argument& argument : body_.arguments) {
    // In the JSON syntax, blocks that are not read here appear as arguments.
    if (has(blocks, argument.name)) {
      if (base::AsciiLower(source_.name()).ends_with(".json")) continue;
      return Error(argument.offset, argument.name + " is a block: write it without \"=\"");
    }
    NH_RETURN_IF_ERROR(
        CheckName(*this, "argument", argument.name, argument.offset, arguments, warnings));
  }
  for (const hcl::Block& block : body_.blocks) {
    if (has(arguments, block.type)) {
      return Error(block.offset, block.type + " is an argument: write " + block.type + " = …");
    }
    NH_RETURN_IF_ERROR(CheckName(*this, "block", block.type, block.offset, blocks, warnings));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> AgentBlock::TextOf(std::string_view name,
                                               const hcl::Value& value) const {
  std::optional<std::string> text = hcl::TextOf(value);
  if (text.has_value()) return *std::move(text);
  const char* const what = value.kind == hcl::Value::Kind::kNull   ? "null"
                           : value.kind == hcl::Value::Kind::kList ? "a list"
                                                                   : "a map";
  return source_.Error(
      value.offset,
      std::string(name) + ": " + what +
          " is not possible here: values are texts, numbers and bools, a list is "
          "written as \"a,b\", a map as \"k=v,k=v\"",
      hcl::IsSecretName(name) ? hcl::Source::Line::kHidden : hcl::Source::Line::kShown);
}

absl::StatusOr<std::string> AgentBlock::Text(std::string_view name) const {
  const hcl::Argument* const argument = hcl::FindArgument(body_, name);
  if (argument == nullptr || argument->value.kind == hcl::Value::Kind::kNull) return std::string();
  return TextOf(name, argument->value);
}

absl::StatusOr<std::string> AgentBlock::RequiredText(std::string_view name) const {
  const hcl::Argument* const argument = hcl::FindArgument(body_, name);
  if (argument == nullptr) return Error(std::string(name) + " is required in this block");
  return TextOf(name, argument->value);
}

absl::StatusOr<bool> AgentBlock::Bool(std::string_view name) const {
  NH_ASSIGN_OR_RETURN(const std::string text, Text(name));
  // zclconf/go-cty:cty/convert/conversion_primitive.go.
  const bool is_true = text == "true" || text == "1";
  if (is_true || text.empty() || text == "false" || text == "0") return is_true;
  return Error(hcl::FindArgument(body_, name)->offset,
               std::string(name) + ": expected true or false");
}

absl::StatusOr<std::int64_t> AgentBlock::Integer(std::string_view name) const {
  const hcl::Argument* const argument = hcl::FindArgument(body_, name);
  if (argument == nullptr || argument->value.kind == hcl::Value::Kind::kNull) return 0;
  NH_ASSIGN_OR_RETURN(const std::string text, TextOf(name, argument->value));
  // zclconf/go-cty:cty/value_init.go, ParseNumberVal.
  const bool is_signed = text.starts_with('-') || text.starts_with('+');
  const auto digits = hcl::CanonicalNumber(std::string_view(text).substr(is_signed ? 1 : 0));
  if (digits.has_value()) {
    auto number = base::ParseInt((text.starts_with('-') ? "-" : "") + *digits);
    if (number.ok()) return number;
  }
  return Error(argument->offset, std::string(name) + ": expected a whole number");
}

absl::StatusOr<std::vector<std::string>> AgentBlock::Texts(std::string_view name) const {
  std::vector<std::string> texts;
  const hcl::Argument* const argument = hcl::FindArgument(body_, name);
  if (argument == nullptr || argument->value.kind == hcl::Value::Kind::kNull) return texts;
  if (argument->value.kind != hcl::Value::Kind::kList) {
    NH_ASSIGN_OR_RETURN(std::string text, TextOf(name, argument->value));
    texts.push_back(std::move(text));
    return texts;
  }
  for (const hcl::Value& item : argument->value.items) {
    NH_ASSIGN_OR_RETURN(std::string text, TextOf(name, item));
    texts.push_back(std::move(text));
  }
  return texts;
}

std::string AgentBlock::Where(std::string_view name) const {
  const hcl::Argument* const argument = hcl::FindArgument(body_, name);
  return source_.Where(argument == nullptr ? offset_ : argument->offset);
}

absl::StatusOr<FileMap> AgentBlock::MapOf(std::string_view name) const {
  const hcl::Argument* const argument = hcl::FindArgument(body_, name);
  if (argument == nullptr || argument->value.kind == hcl::Value::Kind::kNull) return FileMap{};
  if (argument->value.kind != hcl::Value::Kind::kObject) {
    return Error(argument->value.offset, std::string(name) + ": expected a map: { key = value }");
  }
  return Map(argument->value.members);
}

absl::StatusOr<FileMap> AgentBlock::Map(const std::vector<hcl::Argument>& entries) const {
  FileMap map;
  for (const hcl::Argument& entry : entries) {
    NH_ASSIGN_OR_RETURN(map.values[entry.name], TextOf(entry.name, entry.value));
    map.origins[entry.name] = source_.Where(entry.offset);
  }
  return map;
}

absl::StatusOr<std::string> LabelOf(const hcl::Source& source, const hcl::Block& block) {
  if (block.labels.size() == 1) return block.labels.front();
  return source.Error(block.offset, "block " + block.type +
                                        " has one label, its name: " + block.type + " \"NAME\" {");
}

}  // namespace nomad_harvester::cli
