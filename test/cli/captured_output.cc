// SPDX-License-Identifier: Apache-2.0
#include "cli/captured_output.h"

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <fstream>
#include <iostream>
#include <iterator>
#include <system_error>
#include <unistd.h>

namespace nomad_harvester::cli {
namespace {

int Check(int result) {
  if (result < 0) throw std::system_error(errno, std::generic_category());
  return result;
}

void Flush() {
  std::cout.flush();
  std::cerr.flush();
  std::fflush(nullptr);
}

// Makes `fd` refer to a file; returns a copy of the old descriptor.
int Redirect(int fd, const std::string& path) {
  const int saved = Check(fcntl(fd, F_DUPFD_CLOEXEC, 0));
  const int file = Check(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  Check(dup2(file, fd));
  close(file);
  return saved;
}

void Restore(int fd, int saved) {
  dup2(saved, fd);
  close(saved);
}

}  // namespace

CapturedOutput::CapturedOutput() : saved_out_(-1), saved_err_(-1) {
  Flush();
  saved_out_ = Redirect(STDOUT_FILENO, dir_.Path("out"));
  saved_err_ = Redirect(STDERR_FILENO, dir_.Path("err"));
}

CapturedOutput::~CapturedOutput() {
  Flush();
  Restore(STDOUT_FILENO, saved_out_);
  Restore(STDERR_FILENO, saved_err_);
}

std::string CapturedOutput::Read(const std::string& name) const {
  Flush();
  std::ifstream file(dir_.Path(name));
  return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace nomad_harvester::cli
