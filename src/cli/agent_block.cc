// SPDX-License-Identifier: Apache-2.0
#include "agent_block.h"

#include "agent_grammar.h"

namespace nomad_harvester::cli {

AgentBlock::AgentBlock(const hcl::Source& source, const hcl::Block& block)
    : source_(source),
      body_(block.body),
      offset_(block.offset),
      label_(block.labels.empty() ? "" : block.labels.front()) {}

std::vector<AgentBlock> AgentBlock::Blocks(std::string_view type) const {
  std::vector<AgentBlock> blocks;
  for (const hcl::Block& block : body_.blocks) {
    if (block.type == type) blocks.push_back(AgentBlock(source_, block));
  }
  return blocks;
}

std::optional<AgentBlock> AgentBlock::Block(std::string_view type) const {
  const std::vector<AgentBlock> blocks = Blocks(type);
  return blocks.empty() ? std::nullopt : std::optional<AgentBlock>(blocks.front());
}

const hcl::Value* AgentBlock::Find(std::string_view name) const {
  const hcl::Argument* const argument = hcl::FindArgument(body_, name);
  const bool absent = argument == nullptr || argument->value.kind == hcl::Value::Kind::kNull;
  return absent ? nullptr : &argument->value;
}

std::string AgentBlock::Text(std::string_view name) const {
  const hcl::Value* const value = Find(name);
  return value == nullptr ? "" : hcl::TextOf(*value).value_or("");
}

bool AgentBlock::Bool(std::string_view name, bool if_missing) const {
  if (Find(name) == nullptr) return if_missing;
  const std::string text = Text(name);
  return text == "true" || text == "1";
}

std::int64_t AgentBlock::Integer(std::string_view name) const {
  const hcl::Value* const value = Find(name);
  return value == nullptr ? 0 : IntegerOf(*value).value_or(0);
}

std::vector<std::string> AgentBlock::Texts(std::string_view name) const {
  std::vector<std::string> texts;
  const hcl::Value* const value = Find(name);
  if (value == nullptr) return texts;
  if (value->kind != hcl::Value::Kind::kList) return {Text(name)};
  for (const hcl::Value& item : value->items) texts.push_back(hcl::TextOf(item).value_or(""));
  return texts;
}

std::string AgentBlock::Where(std::string_view name) const {
  const hcl::Argument* const argument = hcl::FindArgument(body_, name);
  return source_.Where(argument == nullptr ? offset_ : argument->offset);
}

FileMap AgentBlock::Map(std::string_view name) const {
  const hcl::Value* const value = Find(name);
  return value == nullptr ? FileMap{} : MapOf(value->members);
}

FileMap AgentBlock::MapOf(const std::vector<hcl::Argument>& entries) const {
  FileMap map;
  for (const hcl::Argument& entry : entries) {
    map.values[entry.name] = hcl::TextOf(entry.value).value_or("");
    map.origins[entry.name] = source_.Where(entry.offset);
  }
  return map;
}

}  // namespace nomad_harvester::cli
