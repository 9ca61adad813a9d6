// SPDX-License-Identifier: Apache-2.0
#include "output.h"

#include <atomic>
#include <cerrno>
#include <fcntl.h>
#include <iostream>
#include <string_view>
#include <unistd.h>

#include "nomad_harvester/base/file.h"

namespace nomad_harvester::cli {
namespace {

std::atomic<bool> has_printed = false;

}  // namespace

bool HasPrinted() { return has_printed; }

CheckedOutput::CheckedOutput() : previous_(std::cout.rdbuf()) {
  std::cout.flush();
  setp(buffer_.begin(), buffer_.end());
  has_printed = false;
  std::cout.rdbuf(this);
  std::cout.clear();
}

CheckedOutput::~CheckedOutput() {
  Finish();
  std::cout.rdbuf(previous_);
  std::cout.clear();
}

int CheckedOutput::Finish() {
  std::cout.flush();
  return error_;
}

CheckedOutput::int_type CheckedOutput::overflow(int_type character) {
  if (sync() != 0) return traits_type::eof();
  if (!traits_type::eq_int_type(character, traits_type::eof())) {
    *pptr() = traits_type::to_char_type(character);
    pbump(1);
  }
  return traits_type::not_eof(character);
}

int CheckedOutput::sync() {
  std::string_view left(pbase(), static_cast<std::size_t>(pptr() - pbase()));
  if (!left.empty()) has_printed = true;
  if (error_ == 0) error_ = base::WriteAll(STDOUT_FILENO, &left);
  setp(buffer_.begin(), buffer_.end());
  return error_ == 0 ? 0 : -1;
}

void OccupyStandardDescriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    // This is the lowest free descriptor. It cannot be written to, as before, but texts for a
    // closed standard error are dropped.
    const int mode = fd == STDERR_FILENO ? O_WRONLY : O_RDONLY;
    if (open("/dev/null", mode) != fd) return;  // NOLINT(android-cloexec-open): as inherited ones
  }
}

}  // namespace nomad_harvester::cli
