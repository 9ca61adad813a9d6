// SPDX-License-Identifier: Apache-2.0
// Standard output that reports write errors. Private to module cli.
#ifndef NOMAD_HARVESTER_CLI_OUTPUT_H_
#define NOMAD_HARVESTER_CLI_OUTPUT_H_

#include <array>
#include <streambuf>
#include <string>

namespace nomad_harvester::cli {

// std::cout does not keep the reason of a failed write. While this object exists, std::cout writes
// through it. One at a time; as thread-safe as std::cout.
class CheckedOutput : public std::streambuf {
 public:
  CheckedOutput();
  ~CheckedOutput() override;
  CheckedOutput(const CheckedOutput&) = delete;
  CheckedOutput& operator=(const CheckedOutput&) = delete;

  // Writes the rest; returns the errno of the first failed write, or 0.
  int Finish();

 protected:
  int_type overflow(int_type character) override;
  int sync() override;

 private:
  std::array<char, 4096> buffer_{};
  int error_ = 0;
  std::streambuf* const previous_;
};

// Whether anything was written to standard output since CheckedOutput was made. Thread-safe.
bool HasPrinted();

// Opens closed standard descriptors, so that no connection takes their place, and writing to a
// closed standard output is an error.
void OccupyStandardDescriptors();

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_OUTPUT_H_
