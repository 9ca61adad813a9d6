// SPDX-License-Identifier: Apache-2.0
#include "request_text.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace nomad_harvester::http {
namespace {

constexpr std::string_view kHarmlessKeys[] = {
    "labelSelector", "fieldSelector", "limit",      "index",           "wait",
    "namespace",     "region",        "dryRun",     "fieldValidation", "resources",
    "per_page",      "next_token",    "task_states"};

std::string RedactParameter(std::string_view parameter) {
  const std::size_t equals = parameter.find('=');
  const std::string_view key = parameter.substr(0, equals);
  const bool harmless =
      std::find(std::begin(kHarmlessKeys), std::end(kHarmlessKeys), key) != std::end(kHarmlessKeys);
  if (parameter.empty() || harmless) return std::string(parameter);
  // Without '=' the whole text may be the secret.
  if (equals == std::string_view::npos) return "REDACTED";
  return std::string(key) + "=REDACTED";
}

std::string WithoutUserInfo(std::string_view text) {
  std::string clean;
  for (const char c : text) {
    if (c == '@') clean = clean.substr(0, clean.find_last_of(" '\"/(") + 1) + "REDACTED";
    clean += c;
  }
  return clean;
}

// Replaces whole words in any case: "geofence" does not contain "eof".
void ReplaceWords(std::string* text, std::string_view from, std::string_view to) {
  const auto continues = [text](std::size_t at) {
    return at < text->size() && absl::ascii_isalnum(static_cast<unsigned char>((*text)[at]));
  };
  std::size_t at = 0;
  while ((at = base::AsciiLower(*text).find(from, at)) != std::string::npos) {
    const bool is_word = (at == 0 || !continues(at - 1)) && !continues(at + from.size());
    if (is_word) text->replace(at, from.size(), to);
    at += is_word ? to.size() : from.size();
  }
}

}  // namespace

std::string RequestText(const HttpRequest& request) {
  if (!request.purpose.empty()) return request.purpose;
  return std::string(MethodName(request.method)) + " " +
         request.target.substr(0, request.target.find('?'));
}

std::string RedactTarget(std::string_view target) {
  const std::size_t question = target.find('?');
  if (question == std::string_view::npos) return std::string(target);
  const std::vector<std::string> parameters =
      absl::StrSplit(base::ToAbsl(target.substr(question + 1)), '&');
  const auto redact = [](std::string* all, const std::string& parameter) {
    *all += RedactParameter(parameter);
  };
  return std::string(target.substr(0, question + 1)) + absl::StrJoin(parameters, "&", redact);
}

std::string CleanErrorText(std::string_view text) {
  std::string clean = WithoutUserInfo(text);
  ReplaceWords(&clean, "connection refused", "connection rejected");
  ReplaceWords(&clean, "eof", "end of stream");
  return clean;
}

std::string TimedOutText(base::Duration limit, std::string_view doing) {
  using Tenths = std::chrono::duration<std::int64_t, std::deci>;
  const base::Duration rounded = limit < std::chrono::seconds(1)
                                     ? std::chrono::round<std::chrono::milliseconds>(limit)
                                     : std::chrono::round<Tenths>(limit);
  return "timed out after " + base::FormatGoDuration(rounded) + " " + std::string(doing);
}

absl::Status TimedOut(const absl::Status& ended, base::Duration limit, std::string_view doing) {
  if (!absl::IsDeadlineExceeded(ended)) return ended;
  return base::MakeStatus(ended.code(), TimedOutText(limit, doing));
}

}  // namespace nomad_harvester::http
