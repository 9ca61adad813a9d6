// SPDX-License-Identifier: Apache-2.0
// The examples of the commands' helps and manual pages. Private to module cli.
#ifndef NOMAD_HARVESTER_CLI_EXAMPLES_H_
#define NOMAD_HARVESTER_CLI_EXAMPLES_H_

#include <string>
#include <vector>

namespace nomad_harvester::cli {

// Of a command, or of the program for the empty name: lines for a shell, in which `program` is what
// it calls. They are run by test/contract/documents_test.go. Empty: there is no such command.
std::vector<std::string> ExamplesOf(const std::string& command, const std::string& program);

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_EXAMPLES_H_
