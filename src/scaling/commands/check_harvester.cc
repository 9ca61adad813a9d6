// SPDX-License-Identifier: Apache-2.0
// Checks Harvester's preconditions: whether it answers, and what the token may do.
#include <algorithm>
#include <utility>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/http/curl_transport.h"
#include "nomad_harvester/kube/access.h"
#include "nomad_harvester/kube/connection.h"
#include "nomad_harvester/kube/observed.h"
#include "nomad_harvester/runtime/workers.h"

#include "commands/check_sources.h"
#include "commands/command_run.h"

namespace nomad_harvester::scaling {
namespace {

constexpr char kHarvesterAddress[] = "harvester.address";
constexpr char kHarvesterToken[] = "harvester.token";
constexpr char kHarvesterVersion[] = "harvester.version";
constexpr char kNamespace[] = "harvester.namespace";
constexpr char kLease[] = "harvester.rights.lease";
constexpr char kObservation[] = "harvester.rights.status";

// True for 401 and for Kubernetes' own 403: the server checks who asks.
bool IsRefusal(const absl::Status& status) {
  const auto error = kube::GetKubeError(status);
  return absl::IsUnauthenticated(status) || (error.has_value() && error->http_status == 401) ||
         (kube::IsForbidden(status) && error.has_value() && error->is_status);
}

class HarvesterCheck {
 public:
  HarvesterCheck(const runtime::Context& context, const PoolDependencies& deps,
                 const config::PoolPolicy& policy, HarvesterFacts* facts)
      : context_(context), deps_(deps), policy_(policy), facts_(facts) {
    lines_.Expect(kHarvesterAddress, "Harvester's URL");
    lines_.Expect(kHarvesterToken, "Harvester's token");
    lines_.Expect(kHarvesterVersion, "Harvester's version");
    lines_.Expect(kNamespace, "namespace " + policy.ns);
    lines_.Expect(kObservation, "rights to observe");
    lines_.Expect("harvester.rights.growth", "rights to grow");
    lines_.Expect("harvester.rights.removal", "rights to shrink");
    lines_.Expect(kLease, "rights to the pool's Lease");
    lines_.Expect("harvester.rights.optional", "optional rights");
    ExpectSources(policy, &lines_);
  }

  std::vector<CheckResult> Run() {
    const auto version = deps_.clients.kube->ServerVersion(context_.WithTimeout(kProbeLimit));
    const std::string why =
        CheckReply("Harvester", connection_.curl, version.status(), IsRefusal(version.status()),
                   CureOfAddress(version.status()),
                   "harvester_skip_verify (of a kubeconfig: insecure-skip-tls-verify)", &lines_);
    if (!why.empty()) return std::move(lines_).Take(why);
    if (version.ok() && version->server_time.has_value()) {
      facts_->clock = {.server = *version->server_time, .own = deps_.clock.WallNow()};
    }
    const auto rules = kube::FetchAccessRules(context_, *deps_.clients.kube, policy_.ns);
    if (!CheckToken(rules.status())) {
      return std::move(lines_).Take("Harvester does not accept the token");
    }
    SourceReads reads;
    absl::StatusOr<kube::Observed> setting = absl::UnknownError("not read");
    absl::StatusOr<kube::Observed> ns = absl::UnknownError("not read");
    absl::StatusOr<std::vector<std::string>> foreign = absl::UnknownError("not read");
    std::vector<Right> missing;
    runtime::CallAtOnce(
        context_, deps_.executor,
        {[&] { reads = ReadForCheck(context_, deps_, policy_); }, [&] { ReadVms(); },
         [&] { facts_->lease = ReadLease(context_, deps_.clients, deps_.key, deps_.logger); },
         [&] { missing = CheckRights(context_, deps_, policy_, *rules, &lines_); },
         [&] {
           setting = deps_.clients.kube->Get(context_, kube::kSettings, "", "server-version");
         },
         [&] { ns = deps_.clients.kube->Get(context_, kube::kNamespaces, "", policy_.ns); },
         [&] { foreign = deps_.vms.ListForeignSecrets(context_); }});
    CheckRead(kObservation, "list of VMs", vms_problem_, missing, "list", "virtualmachines");
    CheckRead(kNamespace, "list of Secrets", foreign.status(), missing, "list", "secrets");
    CheckRead("harvester.upgrade", "list of hosts", reads.hosts.status(), missing, "list", "nodes");
    if (!facts_->lease.problem.empty() && !Lacks(missing, "get", "leases")) {
      lines_.Add(kLease, "the pool's Lease", CheckOutcome::kFail, facts_->lease.problem,
                 kSeeHarvester);
    }
    CheckVersion(version, setting);
    std::vector<const harvester::VirtualMachine*> vms;
    if (facts_->vms.has_value()) {
      for (const harvester::VirtualMachine& vm : *facts_->vms) vms.push_back(&vm);
    }
    const absl::Status admitted =
        CheckSources(context_, deps_, policy_, reads, missing, vms, &lines_);
    CheckNamespace(ns, admitted);
    if (foreign.ok() && !foreign->empty()) WarnOfForeign(*foreign);
    return std::move(lines_).Take("something that it needs has failed");
  }

 private:
  static const char* CureOfAddress(const absl::Status& status) {
    const auto answer = kube::GetKubeError(status);
    const char* const early = answer.has_value() ? CureOfAnswer(answer->http_status) : nullptr;
    if (early != nullptr) return early;
    if (answer.has_value() && answer->http_status >= 500) {
      return "it answers, with an error of its own: see whether Harvester's API is healthy";
    }
    if (answer.has_value()) {
      return "harvester_url must be the base URL of the Kubernetes API: https://VIP:6443, or "
             "https://RANCHER/k8s/clusters/ID through Rancher";
    }
    const auto tls = http::TlsTroubleOf(status);
    if (tls == http::TlsTrouble::kServer) {
      return "name the CA that signed the certificate in harvester_ca_cert, and the name in it in "
             "harvester_tls_server_name if it is another one";
    }
    if (tls == http::TlsTrouble::kTime) {
      return "renew Harvester's certificate, or correct this machine's clock";
    }
    if (tls == http::TlsTrouble::kClient) {
      return "give a certificate that Harvester accepts with its own key: harvester_client_cert "
             "and harvester_client_key, or those of the kubeconfig";
    }
    return "correct harvester_url, or let this machine reach it: scheme and port, addresses, "
           "firewall, proxy";
  }

  bool CheckToken(const absl::Status& reviewed) {
    const std::string& sent = connection_.credential;
    if (reviewed.ok()) {
      lines_.Set(kHarvesterToken, CheckOutcome::kPass,
                 sent.empty() ? "none is sent, and none is needed" : "accepted: " + sent);
      return true;
    }
    const bool refused = IsRefusal(reviewed);
    lines_.Set(kHarvesterToken, CheckOutcome::kFail,
               (refused ? "not accepted: " : "not known to be accepted: ") +
                   (sent.empty() ? "no credentials, since none are set for this server" : sent) +
                   ": " + base::Message(reviewed),
               !refused       ? ""
               : sent.empty() ? "set auth_token_file, or a kubeconfig of the server that "
                                "harvester_url names"
                              : "renew the token; one of a ServiceAccount is valid at "
                                "https://VIP:6443, one of Rancher at "
                                "https://RANCHER/k8s/clusters/ID");
    return false;
  }

  void ReadVms() {
    auto all = deps_.vms.ListManaged(context_);
    vms_problem_ = all.status();
    if (!all.ok()) return;
    for (const harvester::VirtualMachine& vm : all->value) {
      if (SharesNodes(vm, policy_)) facts_->same_nodes.insert(vm.pool);
    }
    std::erase_if(all->value, [&](const harvester::VirtualMachine& vm) {
      return vm.pool != policy_.pool || !harvester::IsMember(vm);
    });
    facts_->vms = std::move(all->value);
  }

  // Something in between may refuse what the review grants.
  void CheckRead(const char* id, const char* subject, const absl::Status& status,
                 const std::vector<Right>& missing, const char* verb, const char* resource) {
    if (status.ok() || IsOfMissingRight(status, missing, verb, resource)) return;
    lines_.Add(id, subject, CheckOutcome::kFail, TextOfRead(status), kSeeHarvester);
  }

  void CheckVersion(const absl::StatusOr<kube::Observed>& kubernetes,
                    const absl::StatusOr<kube::Observed>& setting) {
    const std::string of_kubernetes =
        kubernetes.ok() ? base::GetString(kubernetes->object, "gitVersion") : "";
    std::string of_harvester;
    if (setting.ok()) {
      of_harvester = base::GetString(setting->object, "value");
      if (of_harvester.empty()) of_harvester = base::GetString(setting->object, "default");
    }
    const std::string text = "Kubernetes " + (of_kubernetes.empty() ? "?" : of_kubernetes);
    if (!of_harvester.empty()) {
      lines_.Set(kHarvesterVersion, CheckOutcome::kPass, "Harvester " + of_harvester + ", " + text);
    } else if (kube::IsNotFound(setting.status()) || absl::IsNotFound(setting.status())) {
      lines_.Set(kHarvesterVersion, CheckOutcome::kFail,
                 text + ", but no setting server-version: this is a Kubernetes without Harvester",
                 "let harvester_url name Harvester's own cluster: through Rancher, its ID under "
                 "Virtualization Management");
    } else {
      const bool forbidden = kube::IsForbidden(setting.status());
      lines_.Set(kHarvesterVersion,
                 setting.ok() || forbidden ? CheckOutcome::kUnknown : CheckOutcome::kFail,
                 text + "; Harvester's is not known: " +
                     (setting.ok() ? "the setting server-version is empty"
                      : forbidden  ? "the token may not read the setting server-version"
                                   : base::Message(setting.status())),
                 setting.ok() ? ""
                 : forbidden  ? "grant what Harvester's ClusterRole harvester-authenticated grants "
                                "to every user: get on settings.harvesterhci.io"
                              : kSeeHarvester);
    }
  }

  // A Role need not grant reading the namespace, so a successful dry run of a VM in it also counts.
  void CheckNamespace(const absl::StatusOr<kube::Observed>& ns, const absl::Status& admitted) {
    const bool missing = kube::IsForbidden(ns.status()) && kube::IsNotFound(admitted);
    const NamespaceView view =
        missing ? MissingNamespace(policy_.ns) : NamespaceViewOf(ns, policy_.ns);
    // The namespace is there, so what does not exist is something else.
    if (ns.ok() && kube::IsNotFound(admitted)) {
      lines_.Set(kDryRunOfVm, CheckOutcome::kFail, base::Message(admitted),
                 "this server does not have what Harvester has: see whether KubeVirt runs there, "
                 "and whether something in between answers instead");
    }
    if (!view.problem.empty()) {
      lines_.Set(kNamespace, CheckOutcome::kFail, view.problem, view.cure);
    } else if (ns.ok() || admitted.ok()) {
      lines_.Set(kNamespace, CheckOutcome::kPass, "exists");
    } else if (kube::IsForbidden(ns.status())) {
      lines_.Set(kNamespace, CheckOutcome::kUnknown, "the token may not read it");
    } else {
      lines_.Set(kNamespace, CheckOutcome::kFail, base::Message(ns.status()), kSeeHarvester);
    }
  }

  // With the rights on Secrets and VMs that a pool needs, the token reads every Secret of the
  // namespace and uses every ServiceAccount in it.
  void WarnOfForeign(const std::vector<std::string>& secrets) {
    lines_.Add(kNamespace, "namespace " + policy_.ns + " is the pools' alone", CheckOutcome::kWarn,
               std::to_string(secrets.size()) + " Secrets are no pool's, such as " +
                   secrets.front() +
                   ": the plugin's token may read them, and use every ServiceAccount here",
               "give the pools' VMs a namespace that has nothing else");
  }

  const runtime::Context& context_;
  const PoolDependencies& deps_;
  const config::PoolPolicy& policy_;
  HarvesterFacts* const facts_;
  const kube::Connection connection_ =
      kube::ResolveConnection(deps_.clients.config->harvester).value_or(kube::Connection());
  CheckLines lines_;
  absl::Status vms_problem_;
};

}  // namespace

std::vector<CheckResult> CheckHarvester(const runtime::Context& context,
                                        const PoolDependencies& deps,
                                        const config::PoolPolicy& policy, HarvesterFacts* facts) {
  return HarvesterCheck(context, deps, policy, facts).Run();
}

}  // namespace nomad_harvester::scaling
