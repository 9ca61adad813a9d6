// SPDX-License-Identifier: Apache-2.0
// Where a request goes: the input's first line is a server's address, the second one a proxy's, the
// rest a list of NO_PROXY.
#include <cstdint>
#include <string>
#include <string_view>

#include "nomad_harvester/base/encoding.h"
#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/secret.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/http/base_url.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "fuzz/fuzz.h"
#include "proxy.h"

namespace {

namespace base = nomad_harvester::base;
namespace fuzz = nomad_harvester::fuzz;
namespace http = nomad_harvester::http;
using fuzz::Require;

// An address that is refused may hold credentials anywhere.
void RequireSilent(const absl::Status& status) {
  Require(base::Message(status).find(fuzz::kSecretPrefix) == std::string::npos,
          "an address that is refused is not repeated");
}

std::string TakeLine(std::string_view* text) {
  const std::size_t end = text->find('\n');
  const std::string line(text->substr(0, end));
  text->remove_prefix(end == std::string_view::npos ? text->size() : end + 1);
  return line;
}

http::ProxyEnvironment Variables(const std::string& proxy, const std::string& no_proxy) {
  return [=](const std::string& name) {
    if (name == "NO_PROXY") return no_proxy;
    return name == "https_proxy" || name == "http_proxy" ? proxy : std::string();
  };
}

// The server, or a usual one instead of what is refused.
http::BaseUrl CheckServer(const std::string& text) {
  const auto url = http::ParseBaseUrl(text);
  if (!url.ok()) {
    RequireSilent(url.status());
    return *http::ParseBaseUrl("https://vip.test:6443");
  }
  const auto again = http::ParseBaseUrl(url->Url());
  Require(again.ok(), "what an address means is an address");
  Require(again->Text() == url->Text() && again->authority == url->authority &&
              again->path == url->path && again->socket == url->socket,
          "what an address means is said once");
  if (url->is_socket()) return *url;
  Require(!url->host.empty() && url->authority.find('@') == std::string::npos,
          "an address has a host, and no user");
  const auto server = http::ParseBaseUrl(url->Text());
  Require(server.ok() && server->SameServer(*url), "what errors name is the server");
  return *url;
}

void CheckProxy(const http::BaseUrl& url, const std::string& text) {
  const auto proxy = http::ChooseProxy(url, text, Variables("", ""));
  if (!proxy.ok()) return RequireSilent(proxy.status());
  if (proxy->url.empty()) return;
  const auto again = http::ChooseProxy(url, proxy->url, Variables("", ""));
  Require(again.ok() && again->url == proxy->url && again->login.empty(),
          "the address of a proxy holds no credentials");
  const std::string& password = proxy->password.Reveal();
  if (password.size() < 6 || std::string_view("REDACTED").find(password) != std::string::npos) {
    return;
  }
  for (const std::string& form : {password, base::UrlEscape(password)}) {
    Require(base::WithoutSecrets(form).find(form) == std::string::npos,
            "the password of a proxy is a secret");
  }
}

void CheckNoProxy(const http::BaseUrl& url, const std::string& list) {
  const bool named = http::NoProxyMatches(list, url.host, url.port);
  bool named_by_one = false;
  for (const absl::string_view entry : absl::StrSplit(list, ',')) {
    named_by_one |= http::NoProxyMatches(base::ToStd(entry), url.host, url.port);
  }
  Require(named == named_by_one, "each entry of NO_PROXY counts by itself");
  Require(named == http::NoProxyMatches(list, absl::AsciiStrToUpper(url.host), url.port),
          "the case of a host makes no difference");
  if (!url.host.starts_with('.')) {
    Require(http::NoProxyMatches(list + "," + url.host, url.host, url.port),
            "a host is named by itself");
  }
  const auto proxy = http::ChooseProxy(url, "", Variables("http://proxy:3128", list));
  Require(proxy.ok() && proxy->url.empty() == (named || http::IsLoopback(url.host)),
          "NO_PROXY decides, but for this machine");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text = fuzz::Text(data, size);
  const http::BaseUrl url = CheckServer(TakeLine(&text));
  CheckProxy(url, TakeLine(&text));
  if (!url.is_socket()) CheckNoProxy(url, std::string(text));
  return 0;
}
