// SPDX-License-Identifier: Apache-2.0
// Reads the values of a block that CheckGrammar accepted. Private to module cli.
#ifndef NOMAD_HARVESTER_CLI_AGENT_BLOCK_H_
#define NOMAD_HARVESTER_CLI_AGENT_BLOCK_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nomad_harvester/hcl/document.h"

#include "agent_files.h"

namespace nomad_harvester::cli {

// An argument that is missing or null has the type's zero value. `source` and `body` must outlive
// it.
class AgentBlock {
 public:
  AgentBlock(const hcl::Source& source, const hcl::Body& body) : source_(source), body_(body) {}

  // The first label.
  const std::string& label() const { return label_; }
  std::vector<AgentBlock> Blocks(std::string_view type) const;
  // The block of a type of which there is one at most.
  std::optional<AgentBlock> Block(std::string_view type) const;

  std::string Text(std::string_view name) const;
  bool Bool(std::string_view name, bool if_missing = false) const;
  std::int64_t Integer(std::string_view name) const;
  // A list, or a single text as a list of one.
  std::vector<std::string> Texts(std::string_view name) const;
  FileMap Map(std::string_view name) const;
  // All arguments.
  FileMap Map() const { return MapOf(body_.arguments); }

  // Of the argument, or of the block if it has none.
  std::string Where(std::string_view name = "") const;
  absl::Status Error(std::string_view message) const { return source_.Error(offset_, message); }

 private:
  AgentBlock(const hcl::Source& source, const hcl::Block& block);
  // Null if it is missing or null.
  const hcl::Value* Find(std::string_view name) const;
  FileMap MapOf(const std::vector<hcl::Argument>& entries) const;

  const hcl::Source& source_;
  const hcl::Body& body_;
  std::size_t offset_ = 0;
  std::string label_;
};

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_AGENT_BLOCK_H_
