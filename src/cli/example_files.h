// SPDX-License-Identifier: Apache-2.0
// The files of examples/, unchanged. Private to module cli.
#ifndef NOMAD_HARVESTER_CLI_EXAMPLE_FILES_H_
#define NOMAD_HARVESTER_CLI_EXAMPLE_FILES_H_

#include <string>

namespace nomad_harvester::cli {

std::string ExampleAgent();     // agent.hcl
std::string ExamplePolicy();    // policy.hcl
std::string ExampleUserData();  // cloud-init.yaml
std::string ExampleRights();    // rbac.yaml

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_EXAMPLE_FILES_H_
