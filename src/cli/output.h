// SPDX-License-Identifier: Apache-2.0
// Standard output whose errors are told. Private to module cli.
#ifndef NOMAD_HARVESTER_CLI_OUTPUT_H_
#define NOMAD_HARVESTER_CLI_OUTPUT_H_

#include <array>
#include <streambuf>
#include <string>

namespace nomad_harvester::cli {

// std::cout keeps no reason of a failed write: while this object exists, std::cout writes through
// it. One at a time; as thread-safe as std::cout.
class CheckedOutput : public std::streambuf {
 public:
  CheckedOutput();
  ~CheckedOutput() override;
  CheckedOutput(const CheckedOutput&) = delete;
  CheckedOutput& operator=(const CheckedOutput&) = delete;

  // Writes what is left; the errno of the first write that failed, 0 if none did.
  int Finish();

 protected:
  int_type overflow(int_type character) override;
  int sync() override;

 private:
  std::array<char, 4096> buffer_{};
  int error_ = 0;
  std::streambuf* const previous_;
};

// Opens the standard descriptors that are closed, so that no connection becomes one of them, and
// what is written to a closed standard output is an error.
void OccupyStandardDescriptors();

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_OUTPUT_H_
