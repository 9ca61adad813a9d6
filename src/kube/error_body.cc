// SPDX-License-Identifier: Apache-2.0
#include "error_body.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/http/retry.h"
#include "nomad_harvester/kube/object.h"

namespace nomad_harvester::kube {
namespace {

constexpr std::size_t kMaxMessageBytes = 1000;
// No real error body is longer; a larger one is not parsed.
constexpr std::size_t kMaxBodyBytes = 256UL * 1024;

std::string HtmlTitle(std::string_view page) {
  const std::string lower = base::AsciiLower(page);
  const std::size_t open = lower.find("<title");
  const std::size_t begin = open == std::string::npos ? open : lower.find('>', open);
  const std::size_t end = begin == std::string::npos ? begin : lower.find("</title", begin);
  if (end == std::string::npos) return "an HTML page";
  return "an HTML page: " + std::string(page.substr(begin + 1, end - begin - 1));
}

void ReadJson(const Json& body, KubeError& error) {
  error.is_status = base::GetString(body, "kind") == "Status";
  error.message = OneLine(base::GetString(body, "message"));
  error.reason = OneLine(base::GetString(body, "reason"));
  // Rancher's errors have no reason but a string `code`; metav1.Status.code is a number.
  if (error.reason.empty()) error.reason = OneLine(base::GetString(body, "code"));
  const Json* details = base::FindMember(body, "details");
  if (details != nullptr && error.retry_after == base::Duration::zero()) {
    const auto seconds =
        std::clamp<std::int64_t>(base::GetInt(*details, "retryAfterSeconds"), 0, 60);
    error.retry_after = std::chrono::seconds(seconds);
  }
}

}  // namespace

std::string OneLine(std::string_view text) {
  std::string line;
  for (const char c : text) {
    const bool blank = static_cast<unsigned char>(c) <= ' ' || c == '\x7f';
    if (!blank) {
      line += c;
    } else if (!line.empty() && line.back() != ' ') {
      line += ' ';
    }
    if (line.size() > kMaxMessageBytes) {
      line += "…";
      break;
    }
  }
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return base::ToValidUtf8(line);
}

KubeError ReadErrorBody(const http::HttpResponse& response) {
  KubeError error;
  error.http_status = response.status;
  error.retry_after = http::RetryAfter(response).value_or(base::Duration::zero());
  const std::string_view text =
      base::TrimAsciiSpace(std::string_view(response.body).substr(0, kMaxBodyBytes));
  if (text.empty()) return error;
  if (text.front() == '{') {
    const absl::StatusOr<Json> body = base::ParseJson(text, "the error");
    if (body.ok() && body->is_object()) {
      ReadJson(*body, error);
      return error;
    }
  }
  error.message = OneLine(text.front() == '<' ? HtmlTitle(text) : std::string(text));
  return error;
}

}  // namespace nomad_harvester::kube
