// SPDX-License-Identifier: Apache-2.0
#include "init_files.h"

#include <cstddef>
#include <string_view>

#include "nomad_harvester/http/base_url.h"

#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace nomad_harvester::cli {
namespace {

constexpr char kExampleDir[] = "/etc/nomad-autoscaler";
constexpr char kExamplePluginDir[] = "/opt/nomad-autoscaler/plugins";
constexpr std::int64_t kGiB = std::int64_t{1024} * 1024 * 1024;
constexpr std::int64_t kExampleDisk = 40 * kGiB;

// Writes the text as HCL reads it.
std::string HclString(const std::string& text) {
  return "\"" +
         absl::StrReplaceAll(
             text, {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}, {"${", "$${"}, {"%{", "%%{"}}) +
         "\"";
}

std::string Replaced(const std::string& text, const std::string& from, const std::string& to) {
  return absl::StrReplaceAll(text, {{from, to}});
}

// The text from `first` up to, but excluding, `last`. The tests compare whole files, so they fail
// if an example no longer contains one of the two.
struct Range {
  std::size_t begin = 0;
  std::size_t length = 0;
};
Range Find(const std::string& text, std::string_view first, std::string_view last) {
  const std::size_t begin = text.find(first);
  const std::size_t end = begin == std::string::npos ? begin : text.find(last, begin);
  if (end == std::string::npos) return {};
  return {.begin = begin, .length = end - begin};
}

std::string Commented(const std::string& block) {
  std::string text;
  for (const absl::string_view part : absl::StrSplit(block, '\n')) {
    const std::string line(part);
    const bool is_comment = line.find_first_not_of(' ') == line.find('#');
    if (!text.empty()) text += "\n";
    if (line.empty()) {
      text += "    #";
    } else if (is_comment && line.starts_with("    #")) {
      text += line;
    } else {
      text += "    # " + line.substr(line.starts_with("    ") ? 4 : 0);
    }
  }
  return text;
}

std::string ConnectionOf(const InitChoices& choices) {
  std::string text =
      "    # HARVESTER_KUBECONFIG or HARVESTER_URL in the agent's environment take precedence.\n";
  if (!choices.kubeconfig.empty()) {
    text += "    harvester_kubeconfig = " + HclString(choices.kubeconfig) + "\n";
  } else {
    text +=
        "    # The token comes from HARVESTER_TOKEN or HARVESTER_TOKEN_FILE in the agent's "
        "environment.\n";
  }
  if (!choices.harvester_url.empty()) {
    text += "    harvester_url = " + HclString(choices.harvester_url) + "\n";
  }
  return text;
}

// The agent also filters the plugin's lines, so the example's level would only hide it.
constexpr char kNomad[] = "# The agent's connection to Nomad.";
constexpr char kMetrics[] = "# Metrics. ";
constexpr char kDemandApm[] =
    R"(# How many nodes the work in Nomad needs, for the policies' checks (docs/demand.md).
apm "demand" {
  driver = "harvester"
  args   = ["apm"]
}

)";
constexpr char kLogLevel[] =
    "# Of the agent's log, which has the plugin's lines.\nlog_level = \"INFO\"\n\n";

std::string AgentOf(const InitChoices& choices) {
  std::string text = ExampleAgent();
  const Range connection = Find(text, "    # HARVESTER_URL and", "\n    # For a workload identity");
  text.replace(connection.begin, connection.length, ConnectionOf(choices));
  text = Replaced(text, "\"http://127.0.0.1:4646\"", HclString(choices.nomad_address));
  text = Replaced(text, "\"" + std::string(kExampleDir) + "/policies\"",
                  HclString(choices.dir + "/policies"));
  text = Replaced(text, "    log_level       = \"debug\"\n", "");
  text = Replaced(text, kNomad, kLogLevel + std::string(kNomad));
  text = Replaced(text, "[\"read-job\"]", "[\"read-job\", \"list-jobs\"]");
  text = Replaced(text, kMetrics, kDemandApm + std::string(kMetrics));
  if (choices.plugin_dir.empty()) return text;
  text =
      Replaced(text, "\"" + std::string(kExamplePluginDir) + "\"", HclString(choices.plugin_dir));
  return Replaced(text, kExamplePluginDir, choices.plugin_dir);
}

// The check that decides the count; the example's check follows it as a comment.
constexpr char kDemandCheck[] =
    R"(    # As many VMs as the work in Nomad needs: docs/demand.md has the query's grammar. With
    # headroom=1x(cpu=500,memory=1024) in it, there is always room for so much more, and the pool
    # never goes to zero.
    check "nodes-needed" {
      source = "demand"
      query  = "nodes-needed node_class=POOL node_pool=default datacenter=dc1 idle_for=10m"

      strategy "pass-through" {}
    }

    # Or by metrics in Prometheus, in place of the check above:
    #
)";
// A demand query orders nothing twice; a probe's answer must not wait for minutes.
constexpr char kCooldown[] = "    cooldown            = \"5m\"\n";
constexpr char kShortCooldown[] = "    cooldown            = \"1m\"\n";
constexpr char kInterval[] = "    evaluation_interval = \"10s\"\n";
// A count of nodes with work is right if a scale-in removes those without.
constexpr char kLeastBusy[] =
    R"(the least busy nodes are removed first. Their allocations have 15 minutes to
      # move and 5 more to stop; then the VM is deleted even if allocations still run.
      node_selector_strategy        = "least_busy")";
constexpr char kEmpty[] =
    R"(nodes without work are removed, and no others. What is placed there meanwhile has
      # 15 minutes to move and 5 more to stop; then the VM is deleted even if it still runs.
      node_selector_strategy        = "empty_ignore_system")";

// Text instead of the names of examples that are not written.
constexpr char kTlsHere[] =
    "the cluster uses mTLS, take the \"tls\" block of cloud-init-tls.yaml and the files that it "
    "names.";
constexpr char kTlsThere[] =
    "the cluster uses mTLS, docs/lifecycle.md has what is to be added here.";
constexpr char kIntroductionHere[] =
    R"(      # which user_data_file = "/etc/nomad-autoscaler/cloud-init-introduction.yaml" hands to Nomad.)";
constexpr char kIntroductionThere[] =
    R"(      # which user data hands to Nomad: docs/configuration.md, "Introduction tokens".)";

std::string PolicyOf(const InitChoices& choices) {
  std::string text = ExamplePolicy();
  const Range check =
      Find(text, "    # As many VMs as", "\n    # docs/configuration.md has every key");
  const std::string example = text.substr(check.begin, check.length);
  text.replace(check.begin, check.length,
               Replaced(kDemandCheck, "POOL", choices.pool) +
                   Commented(example.substr(0, example.rfind('\n'))) + "\n");
  text = Replaced(text, kLeastBusy, kEmpty);
  text = Replaced(text, kCooldown, kShortCooldown);
  text = Replaced(text, kInterval, kInterval + std::string("    on_check_error      = \"fail\"\n"));
  text = Replaced(text, "# A pool of batch workers between 0 and 10 VMs.",
                  "# The pool " + choices.ns + "/" + choices.pool + ": between 0 and 10 VMs.");
  text = Replaced(text, "scaling \"batch-workers\"", "scaling " + HclString(choices.pool));
  text = Replaced(text, "= \"batch\"", "= " + HclString(choices.pool));
  text = Replaced(text, "nomad-pool=batch", "nomad-pool=" + choices.pool);
  text = Replaced(text, "VM names batch-", "VM names " + choices.pool + "-");
  text = Replaced(text, "      labels      = ", "      # labels    = ");
  text =
      Replaced(text, "namespace       = \"nomad\"", "namespace       = " + HclString(choices.ns));
  text = Replaced(text, "\"default/ubuntu-24.04\"", HclString(choices.image));
  text = Replaced(text, "\"default/vlan10\"", HclString(choices.network));
  text = Replaced(text, "\"" + std::string(kExampleDir) + "/cloud-init.yaml\"",
                  HclString(choices.dir + "/cloud-init.yaml"));
  text = Replaced(text, kIntroductionHere, kIntroductionThere);
  text = Replaced(text, kExampleDir, choices.dir);
  if (choices.ssh_key.empty()) text = Replaced(text, "      ssh_keys  ", "      # ssh_keys");
  if (!choices.ssh_key.empty()) {
    text = Replaced(text, "\"default/operators\"", HclString(choices.ssh_key));
  }
  if (choices.image_bytes > kExampleDisk) {
    const std::int64_t size = (choices.image_bytes + kGiB - 1) / kGiB;
    text = Replaced(text, "\"40Gi\"", "\"" + std::to_string(size) + "Gi\"");
  }
  return text;
}

constexpr char kExampleServers[] = "# Addresses of the Nomad servers.";
constexpr char kServersToEdit[] =
    "# EDIT: an example. Set the addresses of your Nomad servers, or no VM joins.";

std::string UserDataOf(const InitChoices& choices) {
  const std::string text = Replaced(ExampleUserData(), kTlsHere, kTlsThere);
  const std::string servers = NomadServersOf(choices);
  return servers.empty() ? Replaced(text, kExampleServers, kServersToEdit)
                         : Replaced(text, "nomad.example.org", servers);
}

constexpr char kToken[] = R"(---
# The token: kubectl -n NAMESPACE get secret nomad-harvester-autoscaler-token -o jsonpath={.data.token} | base64 -d
# It never expires. For one that does, delete this Secret, and renew a token in auth_token_file:
# kubectl -n NAMESPACE create token nomad-harvester-autoscaler --duration 24h (docs/operations.md)
apiVersion: v1
kind: Secret
type: kubernetes.io/service-account-token
metadata:
  name: nomad-harvester-autoscaler-token
  namespace: NAMESPACE
  annotations:
    kubernetes.io/service-account.name: nomad-harvester-autoscaler
)";

}  // namespace

std::vector<std::string> InitPaths(const std::string& dir) {
  return {dir + "/agent.hcl", dir + "/policies/policy.hcl", dir + "/cloud-init.yaml"};
}

std::vector<InitFile> InitFiles(const InitChoices& choices) {
  const std::vector<std::string> paths = InitPaths(choices.dir);
  return {
      {paths[0], AgentOf(choices)}, {paths[1], PolicyOf(choices)}, {paths[2], UserDataOf(choices)}};
}

// The VMs cannot reach a Nomad agent at a loopback address.
std::string NomadServersOf(const InitChoices& choices) {
  const auto nomad = http::ParseBaseUrl(choices.nomad_address);
  return !nomad.ok() || nomad->is_socket() || http::IsLoopback(nomad->host) ? "" : nomad->host;
}

std::string RightsYaml(const std::string& ns, const std::set<std::string>& sources) {
  const std::string example = absl::StrReplaceAll(
      ExampleRights(),
      {{"(\"nomad\" here)", "(\"" + ns + "\" here)"},
       {"(\"default\" here)", "(\"" + absl::StrJoin(sources, "\", \"") + "\" here)"}});
  // The example's last lines are a comment about the whole cluster.
  const std::size_t optional = example.find("# Optional, for the whole cluster");
  std::vector<std::string> objects;
  for (const std::string& object :
       std::vector<std::string>(absl::StrSplit(example.substr(0, optional), "---\n"))) {
    const std::string of_pool = Replaced(object, "namespace: nomad\n", "namespace: " + ns + "\n");
    if (object.find("  namespace: default\n") == std::string::npos) {
      objects.push_back(of_pool);
      continue;
    }
    for (const std::string& source : sources) {
      objects.push_back(
          Replaced(of_pool, "  namespace: default\n", "  namespace: " + source + "\n"));
    }
  }
  const std::string rest = optional == std::string::npos ? "" : example.substr(optional);
  return absl::StrJoin(objects, "---\n") + Replaced(kToken, "NAMESPACE", ns) +
         Replaced(rest, "namespace: nomad\n", "namespace: " + ns + "\n");
}

}  // namespace nomad_harvester::cli
