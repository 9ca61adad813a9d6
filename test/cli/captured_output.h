// SPDX-License-Identifier: Apache-2.0
// Standard output and error of this process, for the time of a call.
#ifndef NOMAD_HARVESTER_TEST_CLI_CAPTURED_OUTPUT_H_
#define NOMAD_HARVESTER_TEST_CLI_CAPTURED_OUTPUT_H_

#include <string>

#include "support/scoped_temp_dir.h"

namespace nomad_harvester::cli {

// Redirects the descriptors themselves: the log writes to them, and so do the streams. One at a
// time; whatever is written before the end is read back.
class CapturedOutput {
 public:
  CapturedOutput();
  ~CapturedOutput();
  CapturedOutput(const CapturedOutput&) = delete;
  CapturedOutput& operator=(const CapturedOutput&) = delete;

  std::string Stdout() const { return Read("out"); }
  std::string Stderr() const { return Read("err"); }

 private:
  std::string Read(const std::string& name) const;

  const support::ScopedTempDir dir_;
  int saved_out_;
  int saved_err_;
};

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_TEST_CLI_CAPTURED_OUTPUT_H_
