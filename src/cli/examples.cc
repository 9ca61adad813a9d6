// SPDX-License-Identifier: Apache-2.0
#include "examples.h"

#include <string_view>

namespace nomad_harvester::cli {
namespace {

struct Example {
  std::string_view command;
  std::string_view arguments;  // including what the shell does with the output
};

// Lines have at most 80 columns.
constexpr Example kExamples[] = {
    {"", "help status"},
    {"", "check --agent-config agent.hcl --policy web.hcl"},
    {"dev", "dev --simulate"},
    {"dev", "dev --simulate --fail quota"},
    {"init", "init --kubeconfig harvester.kubeconfig --dir pool"},
    {"init", "init --rbac | kubectl apply -f -"},
    {"check", "check --agent-config agent.hcl --policy web.hcl"},
    {"check", "check --agent-config agent.hcl --policy web.hcl -o json"},
    {"status", "status --agent-config agent.hcl --policy web.hcl -o wide"},
    {"status", "status --agent-config agent.hcl --all"},
    {"gc", "gc --agent-config agent.hcl -n nomad --dry-run"},
    {"gc", "gc --agent-config agent.hcl --policy web.hcl"},
    {"adopt", "adopt --agent-config agent.hcl --policy web.hcl --dry-run"},
    {"pause", "pause --agent-config agent.hcl --policy web.hcl"},
    {"pause", "pause --agent-config agent.hcl --policy web.hcl --until 2h"},
    {"resume", "resume --agent-config agent.hcl --policy web.hcl"},
    {"evacuate", "evacuate rack1-a --agent-config agent.hcl --policy web.hcl"},
    {"replace", "replace --drifted --agent-config agent.hcl --policy web.hcl"},
    {"plan", "plan 3 --agent-config agent.hcl --policy web.hcl"},
    {"plan", "plan 3 --agent-config agent.hcl --policy web.hcl -o yaml"},
    {"scale", "scale 3 --agent-config agent.hcl --policy web.hcl"},
    {"scale", "scale 1 --agent-config agent.hcl --policy web.hcl --yes"},
    {"render", "render --agent-config agent.hcl --policy web.hcl"},
    {"version", "version"},
    {"version", "version -o json"},
    {"completion", "completion zsh > _nomad-harvester"},
    {"manual", "manual status | man -l -"},
};

}  // namespace

std::vector<std::string> ExamplesOf(const std::string& command, const std::string& program) {
  std::vector<std::string> lines;
  for (const Example& example : kExamples) {
    if (example.command == command) lines.push_back(program + " " + std::string(example.arguments));
  }
  return lines;
}

}  // namespace nomad_harvester::cli
