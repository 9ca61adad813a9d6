// SPDX-License-Identifier: Apache-2.0
#include "redact.h"

#include <algorithm>
#include <array>

#include "nomad_harvester/base/parse.h"

namespace nomad_harvester::http {
namespace {

constexpr std::array<std::string_view, 22> kHarmlessKeys = {"labelSelector",
                                                            "fieldSelector",
                                                            "limit",
                                                            "watch",
                                                            "resourceVersion",
                                                            "index",
                                                            "wait",
                                                            "stale",
                                                            "namespace",
                                                            "region",
                                                            "dryRun",
                                                            "fieldValidation",
                                                            "fieldManager",
                                                            "os",
                                                            "prefix",
                                                            "propagationPolicy",
                                                            "resources",
                                                            "per_page",
                                                            "next_token",
                                                            "filter",
                                                            "task_states",
                                                            "timeoutSeconds"};

bool IsHarmless(std::string_view key) {
  return std::find(kHarmlessKeys.begin(), kHarmlessKeys.end(), key) != kHarmlessKeys.end();
}

std::string RedactParameter(std::string_view parameter) {
  const std::size_t equals = parameter.find('=');
  const std::string_view key = parameter.substr(0, equals);
  if (parameter.empty() || IsHarmless(key)) return std::string(parameter);
  // Without '=' the whole text may be the secret.
  if (equals == std::string_view::npos) return "REDACTED";
  return std::string(key) + "=REDACTED";
}

bool EndsUserInfo(char c) { return c == ' ' || c == '\'' || c == '"' || c == '/' || c == '('; }

std::string WithoutUserInfo(std::string_view text) {
  std::string clean;
  for (const char c : text) {
    if (c == '@') {
      while (!clean.empty() && !EndsUserInfo(clean.back())) clean.pop_back();
      clean += "REDACTED";
    }
    clean += c;
  }
  return clean;
}

void ReplaceIgnoringCase(std::string* text, std::string_view from, std::string_view to) {
  const std::string lower_from = base::AsciiLower(from);
  std::size_t at = 0;
  while ((at = base::AsciiLower(*text).find(lower_from, at)) != std::string::npos) {
    text->replace(at, from.size(), to);
    at += to.size();
  }
}

}  // namespace

std::string RedactTarget(std::string_view target) {
  const std::size_t question = target.find('?');
  if (question == std::string_view::npos) return std::string(target);
  std::string redacted(target.substr(0, question + 1));
  std::string_view rest = target.substr(question + 1);
  for (;;) {
    const std::size_t ampersand = rest.find('&');
    redacted += RedactParameter(rest.substr(0, ampersand));
    if (ampersand == std::string_view::npos) return redacted;
    redacted += '&';
    rest.remove_prefix(ampersand + 1);
  }
}

std::string CleanErrorText(std::string_view text) {
  std::string clean = WithoutUserInfo(text);
  ReplaceIgnoringCase(&clean, "connection refused", "connection rejected");
  ReplaceIgnoringCase(&clean, "eof", "end of stream");
  return clean;
}

}  // namespace nomad_harvester::http
