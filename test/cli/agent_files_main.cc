// SPDX-License-Identifier: Apache-2.0
// Prints what the commands read from the agent's files, for the comparison with the agent's own
// loader (test/contract/agent_files_test.go):
//
//   agent_files agent|policy FILE|DIR...
//
// A line of JSON for each path: {"error": TEXT}, or {"read": …} with
//   agent    {"NAME": {"driver": …, "config": {…}}, …}, by target
//   policy   [{"name": …, "enabled": …, "target": …, "config": {…}, "refusals": […]}, …]
// What agents up to 0.5.0 refuse is an error here.
#include <iostream>
#include <string>
#include <vector>

#include "nomad_harvester/base/json.h"

#include "agent_files.h"
#include "nlohmann/json.hpp"

namespace {

using nomad_harvester::base::DumpJson;

nlohmann::json ReadAgent(const std::string& path) {
  const auto agent = nomad_harvester::cli::ReadAgentConfig({path});
  if (!agent.ok()) return {{"error", std::string(agent.status().message())}};
  if (!agent->unknown.empty()) return {{"error", agent->unknown.front()}};
  nlohmann::json targets = nlohmann::json::object();
  for (const auto& [name, target] : agent->targets) {
    targets[name] = {{"driver", target.driver}, {"config", target.config.values}};
  }
  return {{"read", targets}};
}

nlohmann::json ReadPolicies(const std::string& path) {
  const auto read = nomad_harvester::cli::ReadPolicies(path);
  if (!read.ok()) return {{"error", std::string(read.status().message())}};
  nlohmann::json policies = nlohmann::json::array();
  for (const auto& policy : read->policies) {
    if (!policy.unknown.empty()) return {{"error", policy.unknown.front()}};
    policies.push_back({{"name", policy.name},
                        {"enabled", policy.enabled},
                        {"target", policy.target},
                        {"config", policy.config.values},
                        {"refusals", policy.refusals}});
  }
  return {{"read", policies}};
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const std::string what = arguments.empty() ? "" : arguments.front();
  if (what != "agent" && what != "policy") {
    std::cerr << "usage: agent_files agent|policy FILE|DIR...\n";
    return 2;
  }
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    std::cout << DumpJson(what == "agent" ? ReadAgent(arguments[i]) : ReadPolicies(arguments[i]))
              << "\n";
  }
  return 0;
}
