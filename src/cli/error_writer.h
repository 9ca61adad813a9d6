// SPDX-License-Identifier: Apache-2.0
// Writes a command's errors, for people or as JSON. Private to module cli.
#ifndef NOMAD_HARVESTER_CLI_ERROR_WRITER_H_
#define NOMAD_HARVESTER_CLI_ERROR_WRITER_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <iosfwd>
#include <memory>
#include <streambuf>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace nomad_harvester::cli {

// The style of all errors of one process.
struct ErrorStyle {
  bool json = false;  // --output json was given
  bool notes = true;  // nor yaml: people read what is on standard error
  // The command answers by its exit code (plan --exit-code), so that that of each error is 1.
  bool answers_by_exit_code = false;
  std::size_t width = 0;  // of the terminal; 0: do not fold lines
  // The exit code of a command that was ended by a signal, else 0.
  std::shared_ptr<std::atomic<int>> interrupted = std::make_shared<std::atomic<int>>(0);
  std::string program = "nomad-harvester";  // the name by which it was called
};

// Returns the value of --output or -o in these arguments; empty: not given.
std::string OutputOf(const std::vector<std::string>& arguments);

// Writes the errors of one command, without secrets and control sequences: each line prefixed with
// "PROGRAM COMMAND: " and folded; or, with --output json, each error as one line of ASCII,
//   {"error": {"command": "status", "message": "all lines", "lines": ["…"], "exit_code": 1}}
// As thread-safe as `err`, which must outlive it.
class ErrorWriter {
 public:
  // `command` may be empty: the error then belongs to no command.
  ErrorWriter(std::string command, ErrorStyle style, std::ostream& err);

  const std::string& command() const { return command_; }
  // Writes one error and returns the command's exit code: `exit_code`, unless a signal has ended
  // the command.
  int Refuse(const absl::Status& problems, int exit_code) const;
  int Refuse(const std::string& problems, int exit_code) const;
  // Writes a line for people that is no error; nothing with --output json or yaml.
  void Note(const std::string& text) const;

  // From now on every exit code is this one.
  void Interrupt(int exit_code) const { style_.interrupted->store(exit_code); }
  int ExitCode(int exit_code) const;

 private:
  std::string Line(const std::string& text) const;

  std::string command_;
  ErrorStyle style_;
  std::ostream* err_;
};

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

// False: standard output is a pipe, a socket or a terminal whose other end is closed. Thread-safe.
bool HasReader();

// Whether anything was written to standard output since CheckedOutput was made. Thread-safe.
bool HasPrinted();

// Opens closed standard descriptors, so that no connection takes their place, and writing to a
// closed standard output is an error.
void OccupyStandardDescriptors();

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_ERROR_WRITER_H_
