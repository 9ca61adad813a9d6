// SPDX-License-Identifier: Apache-2.0
// Client introduction of Nomad 1.11: tokens with which a client of one name and pool may register.
// What is simulated was observed on the real servers (test/e2e/README.md, "Nomad 1.11").
#include <algorithm>
#include <utility>

#include "nomad_harvester/base/encoding.h"
#include "nomad_harvester/base/json.h"

#include "kube_reply.h"
#include "nomad_api.h"

namespace nomad_harvester::simulator {
namespace {

using Json = nlohmann::json;

constexpr base::Duration kDefaultTtl = std::chrono::minutes(5);
// go-jose/go-jose:jwt/validation.go, DefaultLeeway.
constexpr base::Duration kLeeway = std::chrono::minutes(1);
// How every token begins: {"alg":"
constexpr std::string_view kTokenBegins = "eyJhbGci";
constexpr char kHeader[] = R"({"alg":"RS256","typ":"JWT"})";

std::string UrlBase64(std::string_view bytes) {
  std::string text = base::Base64Encode(bytes);
  while (text.ends_with('=')) text.pop_back();
  std::replace(text.begin(), text.end(), '+', '-');
  std::replace(text.begin(), text.end(), '/', '_');
  return text;
}

std::int64_t UnixSeconds(base::WallTime time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
}

std::string_view FirstToken(std::string_view text) {
  const std::size_t begin = text.find(kTokenBegins);
  if (begin == std::string_view::npos) return {};
  text.remove_prefix(begin);
  return text.substr(0, text.find_first_not_of(
                            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."));
}

}  // namespace

std::string NomadState::Introduce(const std::string& name, const std::string& pool,
                                  base::Duration ttl) {
  if (ttl == base::Duration::zero()) ttl = kDefaultTtl;
  ttl = std::min(ttl, world_.options.longest_token);
  IntroToken token{
      .name = name, .pool = pool.empty() ? "default" : pool, .expires = world_.wall() + ttl};
  const std::string id = world_.NextUuid();
  const Json claims = {{"aud", "nomadproject.io"},
                       {"exp", UnixSeconds(token.expires)},
                       {"iat", UnixSeconds(world_.wall())},
                       {"nbf", UnixSeconds(world_.wall())},
                       {"jti", id},
                       {"nomad_node_name", token.name},
                       {"nomad_node_pool", token.pool},
                       {"sub", "node-introduction:global:" + token.pool + ":" + name + ":default"}};
  std::string jwt =
      UrlBase64(kHeader) + "." + UrlBase64(base::DumpJson(claims)) + "." + UrlBase64(id);
  tokens_.emplace(jwt, std::move(token));
  return jwt;
}

bool NomadState::Admits(const NodeSpec& client, std::string_view user_data) const {
  if (world_.options.introduction == Introduction::kNone) return true;
  const std::string_view jwt = FirstToken(user_data);
  if (jwt.empty()) return world_.options.introduction == Introduction::kWarn;
  const auto found = tokens_.find(jwt);
  if (found == tokens_.end()) return false;
  const IntroToken& token = found->second;
  return (token.name.empty() || token.name == client.name) && token.pool == client.node_pool &&
         world_.wall() <= token.expires + kLeeway;
}

NomadReply NomadApi::Introduce(const http::HttpRequest& request) {
  if (request.body.empty()) return {TextReply(400, "Request body is empty"), 0};
  const auto body = base::ParseJson(request.body, "the body");
  if (!body.ok() || !body->is_object()) {
    return {TextReply(400, "Request body is not a JSON object"), 0};
  }
  base::Duration ttl(base::GetInt(*body, "TTL"));
  if (const std::string text = base::GetString(*body, "TTL"); !text.empty()) {
    const auto parsed = base::ParseGoDuration(text);
    if (!parsed.ok()) return {TextReply(400, "time: invalid duration"), 0};
    ttl = *parsed;
  }
  const std::string jwt =
      state_.Introduce(base::GetString(*body, "NodeName"), base::GetString(*body, "NodePool"), ttl);
  return {JsonReply(200, {{"JWT", jwt}}), 0};
}

}  // namespace nomad_harvester::simulator
