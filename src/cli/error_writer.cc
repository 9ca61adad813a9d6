// SPDX-License-Identifier: Apache-2.0
#include "error_writer.h"

#include <ostream>
#include <utility>

#include <nlohmann/json.hpp>

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

}  // namespace

bool WantsJson(const std::vector<std::string>& arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--output=json" || argument == "-ojson" || argument == "-o=json") return true;
    const bool names_output = argument == "--output" || argument == "-o";
    if (names_output && i + 1 < arguments.size() && arguments[i + 1] == "json") return true;
  }
  return false;
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
  const int code = ExitCode(exit_code);
  std::string text;
  if (style_.json) {
    text = AsJson(command_, problems, code) + "\n";
  } else {
    for (const std::string& line : std::vector<std::string>(absl::StrSplit(problems, '\n'))) {
      const std::string whole =
          style_.program + (command_.empty() ? "" : " " + command_) + ": " + Printable(line);
      text += Fold(whole, style_.width, kContinuation) + "\n";
    }
  }
  *err_ << text << std::flush;
  return code;
}

}  // namespace nomad_harvester::cli
