// SPDX-License-Identifier: Apache-2.0
// Checks Nomad's preconditions.
#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/http/curl_transport.h"
#include "nomad_harvester/nodepool/identity.h"
#include "nomad_harvester/nodepool/selector.h"
#include "nomad_harvester/nomad/connection.h"
#include "nomad_harvester/nomad/error.h"
#include "nomad_harvester/runtime/workers.h"

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "commands/check_parts.h"

namespace nomad_harvester::scaling {
namespace {

constexpr char kNomadAddress[] = "nomad.address";
constexpr char kNomadToken[] = "nomad.token";
constexpr char kNodeWrite[] = "nomad.rights.node_write";
constexpr char kReadJob[] = "nomad.rights.read_job";
constexpr char kListJobs[] = "nomad.rights.list_jobs";
constexpr char kOwnNode[] = "nomad.own_node";
constexpr char kNodePool[] = "nomad.node_pool";
constexpr char kNodes[] = "nomad.nodes";
constexpr char kIntroTokens[] = "nomad.introduction_tokens";
constexpr char kNomadVersion[] = "nomad.version";

constexpr char kSetToken[] = "set the agent's token here, too: NOMAD_TOKEN or nomad_token_file";
constexpr char kSetValidToken[] =
    "set a token that is valid in this cluster in nomad_token_file or NOMAD_TOKEN, with the rights "
    "of docs/operations.md";
constexpr char kGrantNodeWrite[] = "grant node { policy = \"write\" } to the token";
constexpr char kSeeLog[] = "see Nomad's log, and nomad server members";
constexpr char kGrantListJobs[] =
    "grant namespace \"*\" { capabilities = [\"read-job\", \"list-jobs\"] } to the token, or set "
    "scale_in_fit = \"report\"";
constexpr char kGrantReadJob[] =
    "grant namespace \"*\" { capabilities = [\"read-job\"] } to the token";

using Version = std::array<std::int64_t, 3>;
constexpr Version kHasIntroTokens = {1, 11, 0};
// hashicorp/nomad#27499 and hashicorp/nomad#28018.
constexpr Version kPutsSystemJobsBack = {1, 11, 3};
constexpr Version kCountsBatchAllocations = {2, 0, 4};

// "1.11.0-beta.1" and "1.9.3+ent" count as their base release; nullopt: not a version.
std::optional<Version> ParseVersion(const std::string& text) {
  const std::vector<std::string> parts =
      absl::StrSplit(text.substr(0, text.find_first_of("-+")), '.');
  Version version{};
  if (parts.size() != version.size()) return std::nullopt;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto number = base::ParseInt(parts[i]);
    if (!number.ok()) return std::nullopt;
    version[i] = *number;
  }
  return version;
}

bool HasToken(const config::NomadSettings& settings) {
  return !settings.token.empty() || !settings.token_file.empty();
}

bool IsDenied(const absl::Status& status) {
  return absl::IsPermissionDenied(status) || absl::IsUnauthenticated(status);
}

const char* CureOfAddress(const absl::Status& status) {
  const auto answer = nomad::GetNomadError(status);
  if (answer.has_value() && answer->text.find("No path to region") != std::string::npos) {
    return "correct nomad_region (or NOMAD_REGION): this Nomad does not know that region, or no "
           "server of it; nomad server members -detailed lists them";
  }
  const char* const early = answer.has_value() ? CureOfAnswer(answer->http_status) : nullptr;
  if (early != nullptr) return early;
  if (answer.has_value() && answer->http_status >= 500) {
    return "it answers, with an error of its own: see Nomad's log, and nomad server members";
  }
  if (answer.has_value()) {
    return "nomad_address must be the base address of a Nomad agent: another server, or a "
           "proxy, answers there";
  }
  const auto tls = http::TlsTroubleOf(status);
  if (tls == http::TlsTrouble::kServer) {
    return "name the CA that signed Nomad's certificate in nomad_ca-cert, and the name in it in "
           "nomad_tls-server-name if it is another one";
  }
  if (tls == http::TlsTrouble::kTime) {
    return "renew Nomad's certificate, or correct this machine's clock";
  }
  if (tls == http::TlsTrouble::kClient) {
    return "give a certificate that Nomad accepts with its own key: nomad_client-cert and "
           "nomad_client-key";
  }
  return "correct nomad_address (or NOMAD_ADDR), or let this machine reach it: scheme and port, "
         "addresses, firewall, proxy";
}

class NomadCheck {
 public:
  NomadCheck(const runtime::Context& context, const PoolDependencies& deps,
             const config::PoolPolicy& policy, NomadFacts* facts)
      : context_(context), deps_(deps), policy_(policy), facts_(facts) {
    lines_.Expect(kNomadAddress, "Nomad's address");
    lines_.Expect(kNomadToken, "Nomad's token");
    lines_.Expect(kNodeWrite, "node:write");
    lines_.Expect(kReadJob, "read-job");
    if (requires_fit()) lines_.Expect(kListJobs, "list-jobs");
    if (!own_allocation().empty()) lines_.Expect(kOwnNode, "the autoscaler's own node");
    if (policy.node_pool.has_value()) lines_.Expect(kNodePool, "node pool " + *policy.node_pool);
    lines_.Expect(kNodes, "nodes with " + IdentityOf(policy).ToString());
    if (policy.intro_token != config::IntroToken::kOff) {
      lines_.Expect(kIntroTokens, "introduction tokens");
    }
    lines_.Expect(kNomadVersion, "Nomad's version");
  }

  std::vector<CheckResult> Run() {
    const auto nodes = nomad().ListNodes(context_.WithTimeout(kProbeLimit));
    const std::string why =
        CheckReply("Nomad", connection_.curl, nodes.status(), IsDenied(nodes.status()),
                   CureOfAddress(nodes.status()), "nomad_skip-verify", &lines_);
    if (!why.empty()) return std::move(lines_).Take(why);
    runtime::CallAtOnce(context_, deps_.executor,
                        {[&] { rights_ = nomad().VerifyRights(context_); },
                         [&] {
                           allocations_ = base::GetStatus(nomad().ListAllocations(
                               context_, nomad::AllocationPart::kResources));
                         },
                         [&] { servers_ = nomad().ListServers(context_); },
                         [&] {
                           facts_->region = deps_.clients.config->nomad.region;
                           const auto cluster = nomad().ReadClusterKeys(context_);
                           facts_->cluster_problem = cluster.status();
                           facts_->cluster = base::ToOptional(cluster);
                         },
                         [&] {
                           if (policy_.node_pool.has_value()) {
                             node_pool_ = nomad().CheckNodePool(context_, *policy_.node_pool);
                           }
                         },
                         [&] {
                           if (!own_allocation().empty()) {
                             own_node_ = FindOwnNode(context_, nomad(), own_allocation());
                           }
                         }});
    if (!CheckToken(nodes.status())) {
      return std::move(lines_).Take("Nomad does not accept the token");
    }
    CheckRights();
    if (!own_allocation().empty()) CheckOwnNode();
    if (policy_.node_pool.has_value()) CheckNodePool();
    if (nodes.ok()) {
      facts_->index = nodes->index;
      CheckNodes(nodes->value);
    } else {
      FailNodes(nodes.status());
    }
    CheckVersion();
    return std::move(lines_).Take("the token may not read Nomad's nodes");
  }

 private:
  const nomad::NomadClient& nomad() const { return *deps_.clients.nomad; }
  bool requires_fit() const { return policy_.scale_in_fit == config::ScaleInFit::kRequire; }
  const std::string& own_allocation() const { return deps_.clients.config->own_allocation_id; }

  // The cure for a missing right. Without a token, the cure is to set one: nobody should widen
  // Nomad's anonymous policy.
  const char* ToGrant(const char* grant) const {
    return HasToken(deps_.clients.config->nomad) ? grant : kSetToken;
  }

  // True if the token is accepted at all. `listed`: the status of listing nodes, which may have
  // been denied.
  bool CheckToken(const absl::Status& listed) {
    const std::string credential = CredentialText(deps_.clients.config->nomad);
    const bool known = rights_.ok() && rights_->node_write != nomad::NodeWrite::kUnverified;
    if (listed.ok() || known) {
      lines_.Set(kNomadToken, CheckOutcome::kPass,
                 listed.ok() && !HasToken(deps_.clients.config->nomad)
                     ? "none is set, and none is needed to read"
                     : "accepted: " + credential);
      return true;
    }
    lines_.Set(kNomadToken, CheckOutcome::kFail,
               "not accepted: " + credential + ": " + base::Message(listed), kSetValidToken);
    return false;
  }

  void CheckRights() {
    if (!rights_.ok()) {
      const std::string problem = base::Message(rights_.status());
      lines_.Set(kNodeWrite, CheckOutcome::kFail, problem);
      lines_.Set(kReadJob, CheckOutcome::kFail, problem);
      if (requires_fit()) lines_.Set(kListJobs, CheckOutcome::kFail, problem);
      return;
    }
    switch (rights_->node_write) {
      case nomad::NodeWrite::kAllowed:
        lines_.Set(kNodeWrite, CheckOutcome::kPass, "granted: drains, eligibility, purges");
        break;
      case nomad::NodeWrite::kDenied:
        lines_.Set(kNodeWrite, CheckOutcome::kFail,
                   "the token's policies do not grant it: no node can be drained, so no VM is "
                   "removed",
                   ToGrant(kGrantNodeWrite));
        break;
      case nomad::NodeWrite::kUnverified:
        lines_.Set(kNodeWrite, CheckOutcome::kUnknown,
                   "the token may not read its own policies; only a drain will tell");
    }
    CheckReadJob();
    if (requires_fit()) CheckListJobs();
  }

  void CheckListJobs() {
    if (rights_->list_jobs) {
      lines_.Set(kListJobs, CheckOutcome::kPass, "granted for every namespace");
      return;
    }
    const bool unverified = rights_->read_job == nomad::ReadJob::kUnverified;
    lines_.Set(
        kListJobs, CheckOutcome::kFail,
        std::string(unverified ? "the token may not read its own policies, so it cannot be verified"
                               : "the token's policies do not grant it for every namespace") +
            ": scale_in_fit \"require\" refuses to remove VMs with work",
        ToGrant(kGrantListJobs));
  }

  void CheckReadJob() {
    const bool by_load = nodepool::NeedsAllocations(policy_.selector);
    const bool needs = by_load || requires_fit();
    const std::string strategy =
        by_load ? "node_selector_strategy " + std::string(policy::NameOf(policy_.selector))
                : "scale_in_fit \"require\"";
    nomad::ReadJob read_job = rights_->read_job;
    if (IsDenied(allocations_)) read_job = nomad::ReadJob::kDenied;
    if (!allocations_.ok() && !IsDenied(allocations_)) {
      lines_.Set(kReadJob, CheckOutcome::kFail, base::Message(allocations_));
    } else if (read_job == nomad::ReadJob::kEverywhere) {
      lines_.Set(kReadJob, CheckOutcome::kPass, "granted for every namespace");
    } else {
      const bool denied = read_job == nomad::ReadJob::kDenied;
      const std::string what =
          denied ? "the token's policies do not grant it for every namespace"
                 : "the token may not read its own policies, so it cannot be verified";
      const std::string costs = needs ? strategy + " refuses to remove VMs"
                                      : "a drain is over only by Nomad's own word, not by what the "
                                        "node's allocations say";
      const CheckOutcome outcome = needs    ? CheckOutcome::kFail
                                   : denied ? CheckOutcome::kWarn
                                            : CheckOutcome::kUnknown;
      lines_.Set(kReadJob, outcome, what + ": " + costs, ToGrant(kGrantReadJob));
    }
  }

  void CheckOwnNode() {
    if (!own_node_.ok()) {
      lines_.Set(kOwnNode, CheckOutcome::kFail, base::Message(own_node_.status()),
                 ToGrant(kGrantReadJob));
    } else {
      lines_.Set(kOwnNode, CheckOutcome::kPass,
                 own_node_->empty() ? "the autoscaler does not run in this Nomad"
                                    : *own_node_ + " is never removed");
    }
  }

  void CheckNodePool() {
    if (node_pool_.ok()) {
      lines_.Set(kNodePool, CheckOutcome::kPass, "exists");
    } else if (IsDenied(node_pool_)) {
      lines_.Set(kNodePool, CheckOutcome::kUnknown, "the token may not read node pools",
                 "grant node_pool \"" + *policy_.node_pool +
                     "\" { policy = \"read\" } to have this checked; scaling does not need it");
    } else if (absl::IsNotFound(node_pool_)) {
      // hashicorp/nomad:nomad/node_endpoint.go, Register.
      lines_.Set(kNodePool, CheckOutcome::kWarn,
                 "it does not exist: a node that joins the authoritative region creates it, in "
                 "another region nodes stay \"initializing\"",
                 "check the name, or create it: nomad node pool apply");
    } else {
      lines_.Set(kNodePool, CheckOutcome::kFail, base::Message(node_pool_));
    }
  }

  // A token that Nomad accepts, and a list that it refuses.
  void FailNodes(const absl::Status& refused) {
    const bool granted = rights_.ok() && rights_->node_write == nomad::NodeWrite::kAllowed;
    lines_.Set(
        kNodes, CheckOutcome::kFail,
        base::Message(refused) +
            (granted ? ", though the token's policies grant node:write, which includes it" : ""),
        granted ? "let the path /v1/nodes through: something between this machine and "
                  "Nomad, such as a proxy, refuses it"
                : ToGrant(kGrantNodeWrite));
  }

  void CheckNodes(const std::vector<nomad::Node>& all) {
    const nodepool::PoolIdentity identity = IdentityOf(policy_);
    std::vector<nomad::Node> members;
    std::copy_if(all.begin(), all.end(), std::back_inserter(members),
                 [&](const nomad::Node& node) { return identity.Contains(node); });
    if (members.empty()) {
      lines_.Set(kNodes, CheckOutcome::kUnknown,
                 "no node of this Nomad has them, as in a pool that is empty; " +
                     std::to_string(all.size()) + " nodes in all",
                 "check that cloud-init writes the same values into Nomad's client configuration");
      CheckRegion();
    } else {
      lines_.Set(kNodes, CheckOutcome::kPass,
                 std::to_string(members.size()) + " of " + std::to_string(all.size()) + " nodes");
    }
    facts_->nodes = std::move(members);
  }

  // With nomad_region set to another region, Nomad answers for that one, or not at all.
  void CheckRegion() {
    if (!servers_.ok() || !facts_->region.empty()) return;
    const std::string& region = servers_->region;
    if (region.empty() || region == "global") return;
    lines_.Add(kNodes, "region of Nomad", CheckOutcome::kWarn,
               "the servers' region is " + region +
                   ", and nomad_region is not set: {{nomad_region}} in user data is empty, which "
                   "Nomad's client takes for global: unless the image or the user data says " +
                   region + ", no VM joins",
               "set nomad_region (or NOMAD_REGION) to \"" + region + "\"");
  }

  void CheckVersion() {
    const bool wants_tokens = policy_.intro_token != config::IntroToken::kOff;
    std::optional<Version> oldest;
    std::string text;
    if (servers_.ok()) {
      if (servers_->server_time.has_value()) {
        facts_->clock = {.server = *servers_->server_time, .own = deps_.clock.WallNow()};
      }
      for (const nomad::Server& server : servers_->list) {
        const auto version = ParseVersion(server.version);
        if (!version.has_value() || (oldest.has_value() && *oldest <= *version)) continue;
        oldest = version;
        text = server.version + " (" + server.name + ", the oldest of " +
               std::to_string(servers_->list.size()) + " servers)";
      }
    }
    if (!oldest.has_value()) {
      const std::string why = servers_.ok() ? "the servers do not tell their version"
                                            : base::Message(servers_.status());
      const bool failed = !servers_.ok() && !IsDenied(servers_.status());
      lines_.Set(kNomadVersion, failed ? CheckOutcome::kFail : CheckOutcome::kUnknown, why,
                 failed ? kSeeLog : "");
      if (wants_tokens) lines_.Set(kIntroTokens, CheckOutcome::kUnknown, why);
      return;
    }
    std::vector<std::string> faults;
    if (*oldest < kPutsSystemJobsBack) {
      faults.emplace_back(
          "before 1.11.3 system jobs are not put back on a node whose drain is cancelled");
    }
    if (*oldest < kCountsBatchAllocations) {
      faults.emplace_back(
          "before 2.0.4 a batch job may run twice when the drain of its node is cancelled");
    }
    if (faults.empty()) {
      lines_.Set(kNomadVersion, CheckOutcome::kPass, text);
    } else {
      lines_.Set(kNomadVersion, CheckOutcome::kWarn, text + ": " + absl::StrJoin(faults, "; "),
                 "upgrade Nomad; until then, cancelling a drain has these effects");
    }
    if (wants_tokens) CheckIntroTokens(*oldest, text);
  }

  // Decides by the version, because making a token for a check would create one more credential.
  void CheckIntroTokens(const Version& oldest, const std::string& version) {
    if (oldest >= kHasIntroTokens) {
      lines_.Set(kIntroTokens, CheckOutcome::kPass,
                 "Nomad " + version + " has them; none was made, so that only node:write is known");
    } else if (policy_.intro_token == config::IntroToken::kRequired) {
      lines_.Set(kIntroTokens, CheckOutcome::kFail,
                 "Nomad " + version + " has none; 1.11 and newer have",
                 "upgrade Nomad's servers, or set nomad_intro_token to \"auto\" or \"off\"");
    } else {
      lines_.Set(kIntroTokens, CheckOutcome::kWarn,
                 "Nomad " + version +
                     " has none; 1.11 and newer have: {{nomad_intro_token}} is empty in new VMs",
                 "upgrade Nomad's servers, or set nomad_intro_token to \"off\"");
    }
  }

  const runtime::Context& context_;
  const PoolDependencies& deps_;
  const config::PoolPolicy& policy_;
  NomadFacts* const facts_;
  const nomad::Connection connection_ =
      nomad::ResolveConnection(deps_.clients.config->nomad).value_or(nomad::Connection());
  CheckLines lines_;
  absl::StatusOr<nomad::TokenRights> rights_ = absl::UnknownError("not read");
  absl::Status allocations_ = absl::UnknownError("not read");
  absl::StatusOr<nomad::Servers> servers_ = absl::UnknownError("not read");
  absl::Status node_pool_ = absl::UnknownError("not read");
  absl::StatusOr<std::string> own_node_ = absl::UnknownError("not read");
};

}  // namespace

std::string CredentialText(const config::NomadSettings& settings) {
  if (!settings.token_file.empty()) return "the token of nomad_token_file " + settings.token_file;
  if (!settings.token.empty()) return "the token of nomad_token or NOMAD_TOKEN";
  return "no token (nomad_token_file, nomad_token and NOMAD_TOKEN are not set)";
}

std::string CureOfNomad(const absl::Status& failed, const config::NomadSettings& settings,
                        const std::string& grant) {
  if (IsDenied(failed) && !HasToken(settings)) return kSetToken;
  if (absl::IsUnauthenticated(failed)) return kSetValidToken;
  return absl::IsPermissionDenied(failed) ? grant : CureOfAddress(failed);
}

std::vector<CheckResult> CheckNomad(const runtime::Context& context, const PoolDependencies& deps,
                                    const config::PoolPolicy& policy, NomadFacts* facts) {
  return NomadCheck(context, deps, policy, facts).Run();
}

}  // namespace nomad_harvester::scaling
