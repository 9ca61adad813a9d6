// SPDX-License-Identifier: Apache-2.0
// The examples in the commands' help and manual pages. Private to module cli.
#ifndef NOMAD_HARVESTER_CLI_EXAMPLES_H_
#define NOMAD_HARVESTER_CLI_EXAMPLES_H_

#include <string>
#include <vector>

namespace nomad_harvester::cli {

// Returns the examples of a command, or of the program if the name is empty: lines for a shell that
// call `program`. test/contract/documents_test.go runs them. Empty: there is no such command.
std::vector<std::string> ExamplesOf(const std::string& command, const std::string& program);

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_EXAMPLES_H_
