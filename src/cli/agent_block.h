// SPDX-License-Identifier: Apache-2.0
// Reads one block of the agent's files with types. Private to module cli.
#ifndef NOMAD_HARVESTER_CLI_AGENT_BLOCK_H_
#define NOMAD_HARVESTER_CLI_AGENT_BLOCK_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "nomad_harvester/hcl/document.h"
#include "nomad_harvester/hcl/source.h"

#include "absl/status/statusor.h"
#include "agent_files.h"

namespace nomad_harvester::cli {

// All errors come from Source::Error. `source` and `body` must outlive it.
class AgentBlock {
 public:
  // `offset`: the position for errors about the block as a whole.
  AgentBlock(const hcl::Source& source, const hcl::Body& body, std::size_t offset)
      : source_(source), body_(body), offset_(offset) {}

  const hcl::Source& source() const { return source_; }
  std::vector<const hcl::Block*> BlocksOf(std::string_view type) const;
  // Returns null if there is none, an error if there are two.
  absl::StatusOr<const hcl::Block*> OnlyBlock(std::string_view type) const;
  AgentBlock Inside(const hcl::Block& block) const { return {source_, block.body, block.offset}; }

  // Reports arguments and blocks that are in neither list: an error if the name is nearly one of
  // them, otherwise a warning, because newer agents know more. Without `warnings` it is always an
  // error.
  absl::Status CheckNames(const std::vector<std::string>& arguments,
                          const std::vector<std::string>& blocks,
                          std::vector<std::string>* warnings) const;

  // Empty if missing or null.
  absl::StatusOr<std::string> Text(std::string_view name) const;
  absl::StatusOr<std::string> RequiredText(std::string_view name) const;
  absl::StatusOr<bool> Bool(std::string_view name) const;
  // 0 if missing or null.
  absl::StatusOr<std::int64_t> Integer(std::string_view name) const;
  // A list, or a single text as a list of one.
  absl::StatusOr<std::vector<std::string>> Texts(std::string_view name) const;
  std::string Where(std::string_view name) const;

  // The entries of a map; none if it is missing or null.
  absl::StatusOr<FileMap> MapOf(std::string_view name) const;
  // Converts every entry to a text.
  absl::StatusOr<FileMap> Map(const std::vector<hcl::Argument>& entries) const;
  absl::Status Error(std::size_t offset, std::string_view message) const {
    return source_.Error(offset, message);
  }
  absl::Status Error(std::string_view message) const { return Error(offset_, message); }

 private:
  absl::StatusOr<std::string> TextOf(std::string_view name, const hcl::Value& value) const;

  const hcl::Source& source_;
  const hcl::Body& body_;
  const std::size_t offset_;
};

// Returns the label of a block that has exactly one.
absl::StatusOr<std::string> LabelOf(const hcl::Source& source, const hcl::Block& block);

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_AGENT_BLOCK_H_
