// SPDX-License-Identifier: Apache-2.0
// Builds the files that nomad-harvester init writes: those of examples/ with an operator's choices
// filled in. Private to module cli.
#ifndef NOMAD_HARVESTER_CLI_INIT_FILES_H_
#define NOMAD_HARVESTER_CLI_INIT_FILES_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace nomad_harvester::cli {

struct InitChoices {
  std::string dir;           // of the files; absolute
  std::string plugin_dir{};  // empty: the example's
  std::string kubeconfig{};  // absolute
  std::string harvester_url{};
  std::string nomad_address{};
  std::string pool{};
  std::string ns{};
  std::string image{};
  std::int64_t image_bytes = 0;
  std::string network{};
  std::string ssh_key{};  // empty: none
};

struct InitFile {
  std::string path;
  std::string content;
};

// Returns agent.hcl, policies/policy.hcl and cloud-init.yaml, in this order.
std::vector<std::string> InitPaths(const std::string& dir);
std::vector<InitFile> InitFiles(const InitChoices& choices);

// Returns where the VMs find Nomad's servers, for retry_join in cloud-init.yaml: the host of
// `nomad_address`. Empty: the VMs cannot reach that host, and the file has an example that must be
// edited.
std::string NomadServersOf(const InitChoices& choices);

// Returns the objects that give a token its rights on VMs in `ns` and on their sources in
// `sources`, and the token itself. To be applied by kubectl.
std::string RightsYaml(const std::string& ns, const std::set<std::string>& sources);

std::string ExampleAgent();     // agent.hcl
std::string ExamplePolicy();    // policy.hcl
std::string ExampleUserData();  // cloud-init.yaml
std::string ExampleRights();    // rbac.yaml

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_INIT_FILES_H_
