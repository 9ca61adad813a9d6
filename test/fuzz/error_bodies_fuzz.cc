// SPDX-License-Identifier: Apache-2.0
// What a server says of an error, and tells back of a secret. The input's first byte chooses the
// status, the rest of its first line the secret; then follows the body, in which the bytes 1 to 7
// stand for the secret, each spelled in another way.
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "nomad_harvester/base/encoding.h"
#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/secret.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/http/message.h"
#include "nomad_harvester/kube/error.h"
#include "nomad_harvester/nomad/error.h"

#include "absl/strings/str_replace.h"
#include "fuzz/fuzz.h"
#include "request_text.h"

namespace {

namespace base = nomad_harvester::base;
namespace fuzz = nomad_harvester::fuzz;
namespace http = nomad_harvester::http;
namespace kube = nomad_harvester::kube;
namespace nomad = nomad_harvester::nomad;
using fuzz::Require;

constexpr std::array<int, 11> kStatuses = {301, 400, 401, 403, 404, 409, 410, 422, 429, 500, 502};

// With small digits in its escapes.
std::string SmallEscapes(std::string text) {
  for (std::size_t at = text.find('%'); at != std::string::npos; at = text.find('%', at + 3)) {
    text.replace(at, 3, base::AsciiLower(text.substr(at, 3)));
  }
  return text;
}

using Spellings = std::array<std::string, 7>;
Spellings SpellingsOf(const std::string& secret) {
  const std::string base64 = base::Base64Encode(secret);
  const std::string quoted = base::DumpJson(secret);
  return {secret,
          base::UrlEscape(secret),
          SmallEscapes(base::UrlEscape(secret)),
          base64,
          base64.substr(0, base64.find_last_not_of('=') + 1),
          absl::StrReplaceAll(base64, {{"+", "-"}, {"/", "_"}}),
          quoted.substr(1, quoted.size() - 2)};
}

// Of the last spelling only JSON's readers know.
void RequireHidden(const Spellings& spellings, const std::string& text) {
  for (std::size_t i = 0; i + 1 < spellings.size(); ++i) {
    Require(text.find(spellings[i]) == std::string::npos, "a text holds no secret");
  }
  Require(base::WithoutSecrets(text) == text, "what is left is no secret");
}

void CheckStatus(const Spellings& spellings, const absl::Status& status) {
  const std::string message = base::Message(status);
  RequireHidden(spellings, message);
  Require(base::ToValidUtf8(message) == message, "an error is a text");
  for (const char c : message) {
    Require(static_cast<unsigned char>(c) >= ' ' && c != '\x7f', "an error is one line");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  std::string_view text = fuzz::Text(data, size).substr(1);
  std::string line(text.substr(0, text.find('\n')));
  text.remove_prefix(std::min(text.size(), line.size() + 1));
  // White space is not kept, so that a line's end would be a part of the secret afterwards.
  for (char& c : line) {
    if (c <= ' ' || c == '\x7f') c = '/';
  }
  // What replaces one part could complete the secret again.
  if (line.find("REDACTED") != std::string::npos) return 0;
  const base::Secret secret(std::string(fuzz::kSecretPrefix) + line);
  const Spellings spellings = SpellingsOf(secret.Reveal());

  http::HttpResponse response;
  response.status = kStatuses[data[0] % kStatuses.size()];
  for (const char c : text) {
    const auto byte = static_cast<std::size_t>(static_cast<unsigned char>(c));
    if (byte >= 1 && byte <= spellings.size()) {
      response.body += spellings[byte - 1];
    } else {
      response.body += c;
    }
  }
  response.headers.Set("Location", response.body.substr(0, response.body.find('\n')));

  RequireHidden(spellings, base::WithoutSecrets(response.body));
  const absl::Status from_kube = kube::ToStatus(response, "get a VM");
  CheckStatus(spellings, from_kube);
  const auto error = kube::GetKubeError(from_kube);
  Require(error.has_value() && error->http_status == response.status, "an error is kept");
  RequireHidden(spellings, error->message);
  RequireHidden(spellings, error->reason);
  Require(kube::IsRefused(from_kube) == kube::IsPermanentRefusal(response),
          "a reply is refused as its error is");

  const absl::Status from_nomad = nomad::ToStatus(response, "list nodes", "node:read");
  CheckStatus(spellings, from_nomad);
  Require(nomad::GetNomadError(from_nomad).has_value(), "an error is kept");

  const std::string clean = http::CleanErrorText(response.body);
  Require(http::CleanErrorText(clean) == clean, "a clean text is clean");
  return 0;
}
