// SPDX-License-Identifier: Apache-2.0
#include "metric_query.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "nomad_harvester/base/encoding.h"
#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/secret.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/http/connection_parts.h"
#include "nomad_harvester/http/curl_transport.h"
#include "nomad_harvester/http/reply_text.h"

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace nomad_harvester::cli {
namespace {

using scaling::CheckOutcome;
using scaling::CheckResult;

// The limit of the agent's plugin (plugin.go, QueryMultiple).
constexpr base::Duration kLimit = std::chrono::seconds(10);
// The agent's plugin asks for a value a second.
constexpr char kStep[] = "1";
constexpr std::size_t kMostOfReply = 16U * 1024U * 1024U;
constexpr std::size_t kMostOfText = 300;

// The value, or empty.
std::string KeyOf(const AgentPlugin& apm, const std::string& key) {
  const auto found = apm.config.values.find(key);
  return found == apm.config.values.end() ? "" : found->second;
}

// How the agent's plugin is configured (plugin.go, SetConfig; prometheus.go, newPluginRoudTripper).
struct Endpoint {
  http::CurlOptions options;
  std::vector<std::pair<std::string, base::Secret>> headers;
  // What a server may tell back of the headers' values: the token alone of "Bearer TOKEN".
  std::vector<base::Secret> tokens;
  std::string credential;  // "basic_auth_user and basic_auth_password"
};

// "%41" becomes "A".
std::string Unescaped(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::string_view digits = text.substr(i + 1).substr(0, 2);
    unsigned char byte = 0;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
    const bool escaped =
        text[i] == '%' && error == std::errc() && end == digits.data() + 2 && digits.size() == 2;
    plain += escaped ? static_cast<char>(byte) : text[i];
    if (escaped) i += digits.size();
  }
  return plain;
}

// Moves the login of "https://USER:PASSWORD@HOST" to where basic_auth_* are, over which it wins
// (golang/go:src/net/http/client.go, send); an empty one does not. The address may then be shown.
// Returns whether there was one.
bool TakeLogin(http::CurlOptions* options) {
  std::string& address = options->base_url;
  const std::size_t scheme = address.find("://");
  if (scheme == std::string::npos) return false;
  const std::size_t begin = scheme + 3;
  const std::size_t end = address.substr(0, address.find_first_of("/?#", begin)).rfind('@');
  if (end == std::string::npos || end < begin) return false;
  const std::string login = address.substr(begin, end - begin);
  address.erase(begin, end + 1 - begin);
  if (login.empty()) return false;
  const std::size_t colon = std::min(login.find(':'), login.size());
  options->basic_auth_user = Unescaped(login.substr(0, colon));
  options->basic_auth_password =
      base::Secret(colon < login.size() ? Unescaped(login.substr(colon + 1)) : "");
  return true;
}

absl::StatusOr<Endpoint> EndpointOf(const AgentPlugin& apm) {
  Endpoint source;
  source.options.base_url = KeyOf(apm, "address");
  if (source.options.base_url.empty()) return base::InvalidArgument("it has no address");
  source.options.basic_auth_user = KeyOf(apm, "basic_auth_user");
  source.options.basic_auth_password = base::Secret(KeyOf(apm, "basic_auth_password"));
  if (!source.options.basic_auth_user.empty() || !source.options.basic_auth_password.empty()) {
    source.credential = "basic_auth_user and basic_auth_password";
  }
  if (TakeLogin(&source.options)) source.credential = "address";
  source.options.max_response_bytes = kMostOfReply;
  if (const std::string ca = KeyOf(apm, "ca_cert"); !ca.empty()) {
    NH_ASSIGN_OR_RETURN(source.options.tls.ca_pem,
                        http::ReadPemFile(ca, http::PemKind::kCertificate));
  }
  if (const std::string skip = KeyOf(apm, "skip_verify"); !skip.empty()) {
    NH_ASSIGN_OR_RETURN(source.options.tls.skip_verify, base::ParseGoBool(skip));
  }
  constexpr std::string_view kHeader = "header_";
  for (const auto& [key, value] : apm.config.values) {
    if (!key.starts_with(kHeader)) continue;
    source.headers.emplace_back(key.substr(kHeader.size()), base::Secret(value));
    source.tokens.emplace_back(value.substr(value.rfind(' ') + 1));
    source.credential += (source.credential.empty() ? "" : ", ") + key;
  }
  return source;
}

std::string SecondsOf(base::WallTime time) {
  return std::to_string(
      std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count());
}

http::HttpRequest RequestOf(const PolicyCheck& check, const Endpoint& source, base::WallTime now) {
  const base::WallTime to = now - check.offset;
  const std::string query = "?query=" + base::UrlEscape(check.query);
  http::HttpRequest request;
  request.target = check.instant
                       ? "/api/v1/query" + query + "&time=" + SecondsOf(to)
                       : "/api/v1/query_range" + query + "&start=" + SecondsOf(to - check.window) +
                             "&end=" + SecondsOf(to) + "&step=" + kStep;
  request.purpose = "query Prometheus";
  for (const auto& [name, value] : source.headers) request.headers.Add(name, value.Reveal());
  return request;
}

struct Verdict {
  CheckOutcome outcome = CheckOutcome::kPass;
  std::string text;
  std::string cure;
};

// The samples, [time, "value"], of a scalar, a vector or a matrix (prometheus/prometheus:
// docs/querying/api.md, Expression query result formats).
std::vector<const nlohmann::json*> SamplesOf(const std::string& type,
                                             const nlohmann::json& result) {
  if (type == "scalar") return {&result};
  std::vector<const nlohmann::json*> samples;
  for (const nlohmann::json& series : result) {
    const nlohmann::json* const one = base::FindMember(series, "value");
    if (one != nullptr) samples.push_back(one);
    const nlohmann::json* const several = base::FindMember(series, "values");
    if (several == nullptr || !several->is_array()) continue;
    for (const nlohmann::json& sample : *several) samples.push_back(&sample);
  }
  return samples;
}

// Of a reply that is a success: {"status": "success", "data": {"resultType": …, "result": […]}}.
Verdict VerdictOfData(const nlohmann::json& reply, const std::string& address) {
  const nlohmann::json* const data = base::FindMember(reply, "data");
  const nlohmann::json* const result =
      data == nullptr ? nullptr : base::FindMember(*data, "result");
  if (result == nullptr || !result->is_array()) {
    return {CheckOutcome::kFail, "the reply of " + address + " is none of Prometheus",
            "correct address of the apm block"};
  }
  const std::string type = base::GetString(*data, "resultType");
  if (type == "string") {
    return {CheckOutcome::kFail, address + " answers with a text, which the agent refuses",
            "correct the query: its result is to be a number"};
  }
  if (result->empty()) {
    return {CheckOutcome::kWarn,
            address +
                " answers, but with no data: the agent takes that as an error of the check, and "
                "scales nothing by it",
            "try the query in Prometheus: are the metrics scraped, and do the labels match?"};
  }
  const std::string series = std::to_string(result->size()) + " series";
  constexpr char kAggregate[] = "aggregate them in the query, with sum() or max()";
  if (type != "scalar" && type != "vector" && result->size() > 1) {
    return {CheckOutcome::kFail,
            address + " answers with " + series + ", and the agent takes only one", kAggregate};
  }
  std::string newest;
  for (const nlohmann::json* const sample : SamplesOf(type, *result)) {
    newest = sample->is_array() && sample->size() == 2 && (*sample)[1].is_string()
                 ? (*sample)[1].get<std::string>()
                 : "?";
    // parseSample of plugin.go.
    if (newest == "NaN") {
      return {CheckOutcome::kFail,
              address + " answers with a value that is no number (NaN), which the agent refuses",
              "avoid the division by zero in the query"};
    }
  }
  // parseVector of plugin.go.
  if (type == "vector" && result->size() > 1) {
    return {CheckOutcome::kWarn,
            address + " answers with " + series + ", which the agent takes for values of one",
            kAggregate};
  }
  return {CheckOutcome::kPass, "answers " + http::OneLine(newest, kMostOfText) + ", at " + address,
          ""};
}

Verdict VerdictOf(const http::HttpResponse& response, const Endpoint& source,
                  const std::string& address) {
  const std::string where = "correct address of the apm block, or what stands before Prometheus";
  if (http::IsRedirection(response)) {
    return {CheckOutcome::kFail, http::RedirectionText(response, "address of the apm block"),
            where};
  }
  if (response.status == 401 || response.status == 403) {
    return {CheckOutcome::kFail,
            address + " refuses with HTTP " + std::to_string(response.status) + ": " +
                (source.credential.empty() ? "the apm block has no credentials"
                                           : "the credentials are those of " + source.credential),
            "correct them in the apm block: basic_auth_user and basic_auth_password, or "
            "header_Authorization"};
  }
  const auto reply = base::ParseJson(response.body, "the reply");
  const std::string status = reply.ok() ? base::GetString(*reply, "status") : "";
  if (status == "error") {
    return {CheckOutcome::kFail,
            "Prometheus refuses the query: " +
                http::OneLine(
                    base::GetString(*reply, "errorType") + ": " + base::GetString(*reply, "error"),
                    kMostOfText),
            "correct the query, or its query_window"};
  }
  if (!response.is_success() || status != "success") {
    const std::string body = http::OneLine(http::TextOfBody(response.body), kMostOfText);
    const std::string hint = http::AddressHint(body, "Prometheus", "address of the apm block");
    return {CheckOutcome::kFail,
            address + " is no Prometheus: HTTP " + std::to_string(response.status) + ", " + body,
            hint.empty() ? where : hint};
  }
  return VerdictOfData(*reply, address);
}

Verdict Ask(const runtime::Context& context, const PolicyCheck& check, const AgentPlugin& apm) {
  const auto source = EndpointOf(apm);
  if (!source.ok()) {
    return {CheckOutcome::kFail,
            "the apm block \"" + check.source + "\": " + base::Message(source.status()),
            "correct the block in the agent's configuration"};
  }
  const std::string& address = source->options.base_url;
  const auto transport = http::MakeCurlTransport(source->options);
  if (!transport.ok()) {
    // What cannot be read as an address may hold a password.
    const bool shown = address.find('@') == std::string::npos;
    return {CheckOutcome::kFail,
            (shown ? address : "address") + ": " + base::Message(transport.status()),
            "correct the apm block \"" + check.source + "\""};
  }
  const auto response = (*transport)
                            ->Send(context.WithTimeout(kLimit),
                                   RequestOf(check, *source, std::chrono::system_clock::now()));
  if (!response.ok()) {
    return {
        CheckOutcome::kFail, base::Message(response.status()),
        "correct address of the apm block \"" + check.source + "\", or let this machine reach it"};
  }
  return VerdictOf(*response, *source, address);
}

Verdict VerdictOf(const runtime::Context& context, const MetricQuery& query) {
  const PolicyCheck& check = query.check;
  // By the name alone (hashicorp/nomad-autoscaler:policy/mutators.go, NomadAPMMutator).
  if (check.source == "nomad-apm" && query.from_zero) {
    return {CheckOutcome::kWarn,
            "its source is Nomad's own data (nomad-apm), which cannot scale from zero: the agent "
            "raises min to 1",
            "set min = 1, or another source"};
  }
  // hashicorp/nomad-autoscaler:policy/handler.go, loadCheckRunners.
  if (check.strategy == "fixed-value") {
    return {CheckOutcome::kPass, "its strategy is fixed-value: the agent asks no source", ""};
  }
  if (!query.apms_are_known) {
    return {CheckOutcome::kUnknown,
            "its source is \"" + check.source + "\", of which nothing is known",
            "give the agent's configuration, too: --agent-config"};
  }
  if (!query.apm.has_value()) {
    return {
        CheckOutcome::kFail,
        "the agent's configuration has no apm block \"" + check.source + "\", which is its source",
        "add the block, or correct source"};
  }
  if (query.apm->driver == "prometheus") return Ask(context, check, *query.apm);
  return {
      CheckOutcome::kUnknown,
      "only the agent asks its source \"" + check.source + "\" (driver " + query.apm->driver + ")",
      ""};
}

}  // namespace

std::vector<CheckResult> CheckMetricQueries(const runtime::Context& context,
                                            const std::vector<MetricQuery>& queries) {
  std::vector<CheckResult> results;
  results.reserve(queries.size());
  for (const MetricQuery& query : queries) {
    Verdict verdict = VerdictOf(context, query);
    results.push_back(
        {.id = "metrics.query",
         .subject = "check \"" + query.check.name + "\" of policy \"" + query.policy + "\"",
         .outcome = verdict.outcome,
         .text = std::move(verdict.text),
         .cure = std::move(verdict.cure)});
  }
  return results;
}

}  // namespace nomad_harvester::cli
