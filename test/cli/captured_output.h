// SPDX-License-Identifier: Apache-2.0
// Captures standard output and error of this process during a call.
#ifndef NOMAD_HARVESTER_TEST_CLI_CAPTURED_OUTPUT_H_
#define NOMAD_HARVESTER_TEST_CLI_CAPTURED_OUTPUT_H_

#include <string>

#include "support/scoped_temp_dir.h"

namespace nomad_harvester::cli {

// Redirects the file descriptors, because both the log and the streams write to them. One instance
// at a time; the text written so far can be read.
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
