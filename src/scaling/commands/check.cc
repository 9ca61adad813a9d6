// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/scaling/check.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <memory>
#include <utility>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/http/base_url.h"
#include "nomad_harvester/http/decorators.h"
#include "nomad_harvester/runtime/workers.h"
#include "nomad_harvester/scaling/maintenance.h"

#include "commands/check_parts.h"
#include "commands/command_run.h"
#include "execution/read_only.h"

namespace nomad_harvester::scaling {

namespace {

bool IsOfName(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-'; }

// Nothing was skipped for nothing: if no result is a failure, what was skipped is one.
void FailIfOnlySkipped(std::vector<CheckResult>* all) {
  const auto is = [](CheckOutcome outcome) {
    return [outcome](const CheckResult& result) { return result.outcome == outcome; };
  };
  if (std::any_of(all->begin(), all->end(), is(CheckOutcome::kFail))) return;
  for (CheckResult& result : *all) {
    if (result.outcome != CheckOutcome::kSkipped) continue;
    result.outcome = CheckOutcome::kFail;
    result.text = "it was not checked: " + result.text;
  }
}

}  // namespace

std::string PlaceholderIn(std::string_view text) {
  constexpr std::array<std::string_view, 3> kDomains = {"example.org", "example.com",
                                                        "example.net"};
  const std::string lower = base::AsciiLower(text);
  constexpr std::string_view kStart = "example.";
  for (std::size_t at = lower.find(kStart); at != std::string::npos;
       at = lower.find(kStart, at + 1)) {
    const std::size_t end = at + kDomains.front().size();
    const std::string_view domain = std::string_view(lower).substr(at, end - at);
    if (std::find(kDomains.begin(), kDomains.end(), domain) == kDomains.end()) continue;
    // "myexample.org" and "example.org.cn" are names of somebody.
    if (at > 0 && (IsOfName(lower[at - 1]) || lower[at - 1] == '_')) continue;
    const std::string_view rest = std::string_view(lower).substr(end);
    if (!rest.empty() && (IsOfName(rest[0]) || rest[0] == '_')) continue;
    if (rest.size() > 1 && rest[0] == '.' && IsOfName(rest[1])) continue;
    std::size_t begin = at;
    while (begin > 0 && (IsOfName(lower[begin - 1]) || lower[begin - 1] == '.')) --begin;
    return std::string(text.substr(begin, end - begin));
  }
  return "";
}

void CheckLines::Expect(std::string id, std::string subject) {
  slots_.push_back({.id = std::move(id), .subject = std::move(subject)});
}

CheckLines::Slot& CheckLines::Find(const std::string& id) {
  return *std::find_if(slots_.begin(), slots_.end(),
                       [&](const Slot& slot) { return slot.id == id; });
}

void CheckLines::Set(const std::string& id, CheckOutcome outcome, std::string text,
                     std::string cure) {
  Add(id, Find(id).subject, outcome, std::move(text), std::move(cure));
}

void CheckLines::Add(const std::string& id, std::string subject, CheckOutcome outcome,
                     std::string text, std::string cure) {
  Find(id).results.push_back({.id = id,
                              .subject = std::move(subject),
                              .outcome = outcome,
                              .text = std::move(text),
                              .cure = std::move(cure)});
}

bool CheckLines::HasFailure() const {
  return std::any_of(slots_.begin(), slots_.end(), [](const Slot& slot) {
    return std::any_of(slot.results.begin(), slot.results.end(), [](const CheckResult& result) {
      return result.outcome == CheckOutcome::kFail;
    });
  });
}

std::vector<CheckResult> CheckLines::Take(const std::string& why_skipped) && {
  std::vector<CheckResult> all;
  all.reserve(slots_.size());
  for (Slot& slot : slots_) {
    if (slot.results.empty()) {
      all.push_back({.id = std::move(slot.id),
                     .subject = std::move(slot.subject),
                     .outcome = CheckOutcome::kSkipped,
                     .text = why_skipped});
      continue;
    }
    all.insert(all.end(), std::make_move_iterator(slot.results.begin()),
               std::make_move_iterator(slot.results.end()));
  }
  return all;
}

std::string CheckReply(const std::string& system, const http::CurlOptions& address,
                       const absl::Status& reply, bool refuses, const char* cure,
                       const std::string& skip_key, CheckLines* lines) {
  const std::string id = base::AsciiLower(system) + ".address";
  const std::string message = base::Message(reply);
  if (http::IsTokenUnreadable(reply)) {
    lines->Set(base::AsciiLower(system) + ".token", CheckOutcome::kFail, message,
               "write the token into this file, readable for this user, or correct the key");
    return "there is no token to ask with";
  }
  const auto parsed = http::ParseBaseUrl(address.base_url);
  const std::string url = !parsed.ok() ? "" : parsed->is_socket() ? parsed->Text() : parsed->Url();
  if (!reply.ok() && !refuses) {
    lines->Set(id, CheckOutcome::kFail,
               message.find(url) == std::string::npos ? url + ": " + message : message, cure);
    return system + " cannot be reached";
  }
  if (!parsed.ok() || (parsed->https && address.tls.skip_verify)) {
    lines->Set(
        id, CheckOutcome::kWarn,
        url +
            " answers, but its certificate is not verified: whoever is between can read the token",
        "remove " + skip_key + ", and name the CA that signed the certificate");
  } else if (!parsed->https && !parsed->is_socket() && !http::IsLoopback(parsed->host)) {
    lines->Set(id, CheckOutcome::kWarn,
               url + " answers, but without TLS: whoever is between can read the token",
               "use the https:// address");
  } else {
    lines->Set(id, CheckOutcome::kPass, url + " answers");
  }
  return "";
}

const char* CureOfAnswer(int http_status) {
  if (http_status == 429) return "it limits how much is asked: wait a minute, and repeat";
  if (http_status != 407) return nullptr;
  return "a proxy wants credentials: write them into its address, http://user:password@proxy:3128";
}

std::vector<CheckResult> Maintenance::Check(const runtime::Context& caller,
                                            const config::PoolPolicy& policy) const {
  const runtime::Context context = caller.WithWritePermit(std::make_shared<ReadOnly>());
  CommandRun run(options_, clients_, {.ns = policy.ns, .pool = policy.pool});
  const PoolDependencies deps = run.Deps(options_);
  HarvesterFacts harvester;
  NomadFacts nomad;
  std::vector<CheckResult> all;
  std::vector<CheckResult> of_nomad;
  // An executor without threads runs both one after the other, so they must share the time.
  const base::Duration harvesters = context.Remaining() / 3 * 2;
  runtime::CallAtOnce(
      context, deps.executor,
      {[&] { all = CheckHarvester(context.WithTimeout(harvesters), deps, policy, &harvester); },
       [&] { of_nomad = CheckNomad(context, deps, policy, &nomad); }});
  const std::vector<CheckResult> of_pool =
      CheckPool(policy, harvester, nomad, deps.clock.WallNow());
  all.insert(all.end(), of_nomad.begin(), of_nomad.end());
  all.insert(all.end(), of_pool.begin(), of_pool.end());
  FailIfOnlySkipped(&all);
  return all;
}

}  // namespace nomad_harvester::scaling
