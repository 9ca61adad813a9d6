// SPDX-License-Identifier: Apache-2.0
// Output that is stored in test/cli/golden.
#ifndef NOMAD_HARVESTER_TEST_CLI_GOLDEN_H_
#define NOMAD_HARVESTER_TEST_CLI_GOLDEN_H_

#include <cstdlib>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "nomad_harvester/base/file.h"

#include "support/source_tree.h"

namespace nomad_harvester::cli {

inline void ExpectGolden(const std::string& file, const std::string& text) {
  const std::string path = support::SourcePath("test/cli/golden/" + file);
  if (std::getenv("NOMAD_HARVESTER_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path, std::ios::binary) << text;
  }
  EXPECT_EQ(text, base::ReadFile(path).value_or(""))
      << "if the change is intended, run cli_maintenance_test with NOMAD_HARVESTER_UPDATE_GOLDEN=1 "
         "and commit test/cli/golden/"
      << file;
}

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_TEST_CLI_GOLDEN_H_
