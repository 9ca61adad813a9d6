// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/http/reply_text.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/secret.h"
#include "nomad_harvester/base/status.h"

#include "absl/strings/ascii.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "request_text.h"

namespace nomad_harvester::http {
namespace {

constexpr std::size_t kMaxTarget = 1000;
// No real error body is longer.
constexpr std::size_t kMaxBody = 256UL * 1024;
constexpr char kPage[] = "nomad-harvester/page";

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

std::string OneLine(std::string_view text, std::size_t limit) {
  std::string line;
  // A server may repeat the token. It is removed before the cut, because part of it would not be
  // recognised.
  for (const char c : base::WithoutSecrets(std::string(text))) {
    const bool blank = static_cast<unsigned char>(c) <= ' ' || c == '\x7f';
    if (!blank) {
      line += c;
    } else if (!line.empty() && line.back() != ' ') {
      line += ' ';
    }
    if (line.size() > limit) {
      line += "…";
      break;
    }
  }
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return base::ToValidUtf8(line);
}

std::string TextOfBody(std::string_view body) {
  body = base::TrimAsciiSpace(body.substr(0, kMaxBody));
  if (body.empty() || body.front() != '<') return std::string(body);
  const std::string lower = base::AsciiLower(body);
  const std::size_t open = lower.find("<title");
  const std::size_t begin = open == std::string::npos ? open : lower.find('>', open);
  const std::size_t end = begin == std::string::npos ? begin : lower.find("</title", begin);
  if (end == std::string::npos) return "an HTML page";
  return "an HTML page: " + std::string(body.substr(begin + 1, end - begin - 1));
}

std::string NotTheApi(std::string_view system, std::string_view key) {
  return "this is not " + std::string(system) + "'s API: check " + std::string(key);
}

std::string AddressHint(std::string_view text_of_body, std::string_view system,
                        std::string_view key) {
  // The texts are from golang/go:src/net/http/server.go and
  // nginx/nginx:src/http/ngx_http_special_response.c.
  for (const std::string_view plain : {"Client sent an HTTP request to an HTTPS server",
                                       "The plain HTTP request was sent to HTTPS port"}) {
    if (text_of_body.find(plain) == std::string_view::npos) continue;
    return "this port speaks TLS: write https:// in " + std::string(key);
  }
  return IsPage(text_of_body) ? NotTheApi(system, key) : "";
}

absl::Status Undecodable(std::string_view purpose, const HttpResponse& response,
                         const absl::Status& why, std::string_view key) {
  const bool is_page = IsPage(TextOfBody(response.body)) ||
                       response.headers.Find("Content-Type").value_or("").starts_with("text/html");
  absl::Status status = base::Internal(
      std::string(purpose) + ": " + (is_page ? "the reply is an HTML page" : base::Message(why)) +
      "; check that " + std::string(key) + " is the address of the API");
  if (is_page) status.SetPayload(kPage, absl::Cord());
  return status;
}

bool IsAnsweredByPage(const absl::Status& status) { return status.GetPayload(kPage).has_value(); }

std::string RedirectionText(const HttpResponse& response, std::string_view key) {
  // Removes secrets before the cut, because part of one would not be recognised.
  std::string target = base::WithoutSecrets(response.headers.Find("Location").value_or(""));
  target.erase(std::min(target.find_first_of("?#"), target.size()));
  const std::size_t slashes = target.find("//");
  const std::size_t host = slashes == std::string::npos ? 0 : slashes + 2;
  const std::size_t at = target.rfind('@', target.find('/', host));
  if (at != std::string::npos && at >= host) target.erase(host, at + 1 - host);
  const std::string text = OneLine(target, kMaxTarget);
  return "redirected" + (text.empty() ? text : " to " + text) + ", which is not followed: check " +
         std::string(key);
}

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
