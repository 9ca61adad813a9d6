// SPDX-License-Identifier: Apache-2.0
// Maps and environments for the tests of the config module.
#ifndef NOMAD_HARVESTER_TEST_CONFIG_CONFIG_TEST_SUPPORT_H_
#define NOMAD_HARVESTER_TEST_CONFIG_CONFIG_TEST_SUPPORT_H_

#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/base/file.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/config/option_table.h"
#include "nomad_harvester/config/plugin_config.h"
#include "nomad_harvester/config/pool_policy.h"

#include "absl/strings/str_split.h"
#include "config_reader.h"
#include "support/scoped_temp_dir.h"
#include "support/source_tree.h"

namespace nomad_harvester::config {

// The first cell of an option's row in docs/configuration.md.
inline std::string KeyCell(std::string_view key) {
  return "<a id=\"" + std::string(key) + "\"></a>`" + std::string(key) + "`";
}

// The cells of all these rows.
inline std::vector<std::vector<std::string>> ReferenceRows() {
  const std::string page = base::ReadFile(support::SourcePath("docs/configuration.md")).value();
  std::vector<std::vector<std::string>> rows;
  for (std::string line : std::vector<std::string>(absl::StrSplit(page, '\n'))) {
    if (!line.starts_with("| <a id=") || !line.ends_with(" |")) continue;
    line = line.substr(2, line.size() - 4);
    rows.emplace_back(absl::StrSplit(line, " | "));
  }
  return rows;
}

// The cells of the option's row; fails if there is none.
inline std::vector<std::string> ReferenceRow(std::string_view key) {
  static const auto* const kRows = new std::vector<std::vector<std::string>>(ReferenceRows());
  for (const std::vector<std::string>& row : *kRows) {
    if (row.front() == KeyCell(key)) return row;
  }
  ADD_FAILURE() << "docs/configuration.md has no row of " << key;
  return std::vector<std::string>(5);
}

// The example of the option's row: "`"VALUE"`".
inline std::string ExampleOf(const Option& option) {
  const std::string cell = ReferenceRow(option.key)[3];
  EXPECT_TRUE(cell.starts_with("`\"") && cell.ends_with("\"`")) << option.key << ": " << cell;
  return cell.substr(2, cell.size() - 4);
}

inline StringMap MinimalPlugin() { return {{"harvester_url", "https://10.0.0.10:6443"}}; }

inline StringMap MinimalPolicy() {
  return {{"node_group_name", "web"}, {"node_class", "web"},     {"image", "default/ubuntu"},
          {"cpu_request", "2"},       {"memory_request", "4Gi"}, {"networks", "default/vlan10"}};
}

inline StringMap With(StringMap map, const StringMap& changes) {
  for (const auto& [key, value] : changes) map[key] = value;
  return map;
}
inline StringMap Without(StringMap map, const std::string& key) {
  map.erase(key);
  return map;
}

inline absl::StatusOr<PluginConfig> ParsePlugin(const StringMap& changes,
                                                const StringMap& environment = {}) {
  return ParsePluginConfig(With(MinimalPlugin(), changes), environment);
}
inline absl::StatusOr<PoolPolicy> ParsePolicy(const StringMap& changes) {
  return ParsePoolPolicy(With(MinimalPolicy(), changes));
}
// Requires that the changes are valid.
inline PoolPolicy PolicyOf(const StringMap& changes) {
  const auto policy = ParsePolicy(changes);
  EXPECT_TRUE(policy.ok()) << policy.status();
  return policy.ok() ? *policy : PoolPolicy{};
}

// The lines of the error; empty if there is none.
template <typename T>
std::vector<std::string> ProblemsOf(const absl::StatusOr<T>& result) {
  if (result.ok()) return {};
  EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
  return absl::StrSplit(base::Message(result.status()), '\n');
}
// The one problem; fails if there is not exactly one.
template <typename T>
std::string ProblemOf(const absl::StatusOr<T>& result) {
  const std::vector<std::string> problems = ProblemsOf(result);
  EXPECT_EQ(problems.size(), 1U) << ::testing::PrintToString(problems);
  return problems.empty() ? "" : problems.front();
}

// The result of a parser of values.h.
template <typename T>
T ValueOf(const ValueOr<T>& parsed) {
  const T* const value = std::get_if<T>(&parsed);
  if (value != nullptr) return *value;
  ADD_FAILURE() << std::get<Fault>(parsed).what;
  return T{};
}
template <typename T>
std::string FaultOf(const ValueOr<T>& parsed) {
  const Fault* const fault = std::get_if<Fault>(&parsed);
  if (fault != nullptr) return fault->what;
  ADD_FAILURE() << "the value was accepted";
  return "";
}

}  // namespace nomad_harvester::config

#endif  // NOMAD_HARVESTER_TEST_CONFIG_CONFIG_TEST_SUPPORT_H_
