// SPDX-License-Identifier: Apache-2.0
#include "error_writer.h"

#include <atomic>
#include <cerrno>
#include <fcntl.h>
#include <iostream>
#include <ostream>
#include <poll.h>
#include <string_view>
#include <unistd.h>
#include <utility>

#include <nlohmann/json.hpp>

#include "nomad_harvester/base/file.h"
#include "nomad_harvester/base/secret.h"
#include "nomad_harvester/base/status.h"

#include "absl/strings/str_split.h"
#include "terminal.h"
#include "text.h"

namespace nomad_harvester::cli {
namespace {

constexpr std::size_t kContinuation = 2;

std::string AsJson(const std::string& command, const std::string& problems, int exit_code) {
  const std::string text = base::WithoutSecrets(problems);
  nlohmann::json error = {{"error",
                           {{"message", text},
                            {"lines", std::vector<std::string>(absl::StrSplit(text, '\n'))},
                            {"exit_code", exit_code}}}};
  if (!command.empty()) error["error"]["command"] = command;
  return error.dump(-1, ' ', /*ensure_ascii=*/true, nlohmann::json::error_handler_t::replace);
}

std::atomic<bool> has_printed = false;

}  // namespace

std::string OutputOf(const std::vector<std::string>& arguments) {
  std::string output;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--output" || argument == "-o") {
      if (i + 1 < arguments.size()) output = arguments[i + 1];
      continue;
    }
    for (const std::string_view prefix : {"--output=", "-o=", "-o"}) {
      if (!argument.starts_with(prefix)) continue;
      output = argument.substr(prefix.size());
      break;
    }
  }
  return output;
}

ErrorWriter::ErrorWriter(std::string command, ErrorStyle style, std::ostream& err)
    : command_(std::move(command)), style_(std::move(style)), err_(&err) {}

int ErrorWriter::ExitCode(int exit_code) const {
  const int interrupted = style_.interrupted->load();
  return interrupted != 0 ? interrupted : exit_code;
}

int ErrorWriter::Refuse(const absl::Status& problems, int exit_code) const {
  return Refuse(base::Message(problems), exit_code);
}

int ErrorWriter::Refuse(const std::string& problems, int exit_code) const {
  const int code = ExitCode(style_.answers_by_exit_code ? 1 : exit_code);
  std::string text;
  if (style_.json) {
    text = AsJson(command_, problems, code) + "\n";
  } else {
    for (const std::string& line : std::vector<std::string>(absl::StrSplit(problems, '\n'))) {
      text += Line(line);
    }
  }
  *err_ << text << std::flush;
  return code;
}

void ErrorWriter::Note(const std::string& text) const {
  if (style_.notes) *err_ << Line(text) << std::flush;
}

std::string ErrorWriter::Line(const std::string& text) const {
  const std::string whole =
      style_.program + (command_.empty() ? "" : " " + command_) + ": " + Printable(text);
  return Fold(whole, style_.width, kContinuation) + "\n";
}

bool HasPrinted() { return has_printed; }

bool HasReader() {
  pollfd output{.fd = STDOUT_FILENO, .events = 0, .revents = 0};
  return poll(&output, 1, 0) <= 0 || (output.revents & (POLLERR | POLLHUP)) == 0;
}

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
