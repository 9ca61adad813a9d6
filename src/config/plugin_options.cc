// SPDX-License-Identifier: Apache-2.0
// The keys of the plugin's config block (SetConfig). Order: that of the reference and of problems.
#include <span>

#include "options.h"

namespace nomad_harvester::config {
namespace {

constexpr char kHarvester[] = "Harvester";
constexpr char kNomad[] = "Nomad";
constexpr char kWork[] = "How it works";

// An option of Nomad's own client: the agent injects it, perhaps empty, and the environment only
// fills what is absent (hashicorp/nomad-autoscaler:sdk/helper/nomad/config.go,
// hashicorp/nomad:api/api.go DefaultConfig).
constexpr Option Inherited(std::string_view key, OptionType type, std::string_view environment,
                           std::string_view documentation, std::string_view default_text = {}) {
  return {.section = Section::kPlugin,
          .group = kNomad,
          .key = key,
          .type = type,
          .default_text = default_text,
          .environment = environment,
          .environment_wins = false,
          .empty_is_absent = type != OptionType::kBool && type != OptionType::kDuration,
          .documentation = documentation};
}

constexpr Option kPluginOptions[] = {
    {.group = kHarvester,
     .key = "harvester_url",
     .type = OptionType::kUrl,
     .default_note = "the kubeconfig's server",
     .environment = "HARVESTER_URL",
     .documentation = "Base URL of the Kubernetes API: `https://VIP`, `https://VIP:6443` or "
                      "`https://RANCHER/k8s/clusters/ID`; a path is kept. Required unless a "
                      "kubeconfig is given. It overrides the kubeconfig's server; if host or port "
                      "differ, the kubeconfig's credentials are not used."},
    {.group = kHarvester,
     .key = "auth_token",
     .type = OptionType::kSecret,
     .environment = "HARVESTER_TOKEN",
     .documentation = "Bearer token. Not together with `auth_token_file`."},
    {.group = kHarvester,
     .key = "auth_token_file",
     .type = OptionType::kPath,
     .environment = "HARVESTER_TOKEN_FILE",
     .documentation =
         "File with the bearer token, read again when it changes and after a 401. It may be "
         "created later: if it is missing when the configuration is read, that is a warning."},
    {.group = kHarvester,
     .key = "harvester_kubeconfig",
     .type = OptionType::kPath,
     .environment = "HARVESTER_KUBECONFIG",
     .documentation = "Path of a kubeconfig. Server, CA, token, token file, client certificate, "
                      "`insecure-skip-tls-verify`, `tls-server-name`, `proxy-url`, `username` and "
                      "`password` are honoured; an `exec` or `auth-provider` entry is an error."},
    {.group = kHarvester,
     .key = "harvester_kubeconfig_context",
     .default_note = "its current context",
     .documentation = "Context of the kubeconfig."},
    {.group = kHarvester,
     .key = "harvester_ca_cert",
     .type = OptionType::kPath,
     .default_note = "the system's CAs",
     .documentation =
         "File of PEM certificates for the verification of Harvester's certificate. Otherwise: "
         "`SSL_CERT_FILE`, `SSL_CERT_DIR`, the well-known bundles of Debian, Alpine, SUSE and "
         "RHEL. If none of these exists, an error names this key."},
    {.group = kHarvester,
     .key = "harvester_client_cert",
     .type = OptionType::kPath,
     .documentation =
         "PEM file with a client certificate. Only together with `harvester_client_key`."},
    {.group = kHarvester,
     .key = "harvester_client_key",
     .type = OptionType::kPath,
     .documentation = "PEM file with the key of the client certificate."},
    {.group = kHarvester,
     .key = "harvester_tls_server_name",
     .default_note = "the URL's host",
     .documentation =
         "Name that Harvester's certificate must contain, for a VIP that it does not contain."},
    {.group = kHarvester,
     .key = "harvester_skip_verify",
     .type = OptionType::kBool,
     .default_text = "false",
     .documentation = "Accept any certificate. The token can then be intercepted between the "
                      "plugin and Harvester."},

    Inherited("nomad_address", OptionType::kUrl, "NOMAD_ADDR,NOMAD_UNIX_ADDR",
              "Address of Nomad's HTTP API: `http://`, `https://` or `unix:///path`.",
              "http://127.0.0.1:4646"),
    Inherited("nomad_region", OptionType::kString, "NOMAD_REGION",
              "Region of the pools' nodes; absent: that of the Nomad agent at `nomad_address`."),
    Inherited("nomad_namespace", OptionType::kString, "NOMAD_NAMESPACE",
              "Namespace sent with requests; nodes have none."),
    Inherited("nomad_token", OptionType::kSecret, "NOMAD_TOKEN",
              "ACL token: node write, and `read-job` in every namespace."),
    {.group = kNomad,
     .key = "nomad_token_file",
     .type = OptionType::kPath,
     .environment = "NOMAD_TOKEN_FILE",
     .empty_is_absent = true,
     .documentation =
         "File with the ACL token, read again when it changes and after a 401 or 403: workload "
         "identities expire. Takes precedence over `nomad_token`, which the agent may inject. If "
         "it is missing when the configuration is read, that is a warning."},
    Inherited(
        "nomad_http-auth", OptionType::kSecret, "NOMAD_HTTP_AUTH",
        "HTTP basic authentication, `user` or `user:password`, for a proxy in front of Nomad."),
    Inherited("nomad_ca-cert", OptionType::kPath, "NOMAD_CACERT",
              "File of PEM certificates for the verification of Nomad's certificate."),
    Inherited("nomad_ca-path", OptionType::kPath, "NOMAD_CAPATH", "Directory of such files."),
    Inherited("nomad_client-cert", OptionType::kPath, "NOMAD_CLIENT_CERT",
              "PEM file with a client certificate. Only together with `nomad_client-key`."),
    Inherited("nomad_client-key", OptionType::kPath, "NOMAD_CLIENT_KEY",
              "PEM file with the key of the client certificate."),
    Inherited("nomad_tls-server-name", OptionType::kString, "NOMAD_TLS_SERVER_NAME",
              "Name that Nomad's certificate must contain, such as `server.global.nomad`."),
    Inherited("nomad_skip-verify", OptionType::kBool, "NOMAD_SKIP_VERIFY",
              "Accept any certificate of Nomad.", "false"),
    Inherited("nomad_block-query-wait-time", OptionType::kDuration, "",
              "Longest wait of a blocking query for Nomad's nodes, while a Scale or background "
              "work waits for a change. The agent injects its own value, by default `5m0s`. No "
              "query waits longer than `5s`, because VMs change independently of nodes.",
              "5s"),
    Inherited("nomad_config_inherit", OptionType::kBool, "",
              "Read by the agent: with `false` it injects none of the keys of this table, which "
              "then come from this block, the environment and the defaults.",
              "true"),

    {.group = kWork,
     .key = "allow_unverified_read_job",
     .type = OptionType::kBool,
     .default_text = "false",
     .documentation = "Allow `least_busy`, `empty` and `empty_ignore_system` although it cannot be "
                      "verified that the token has `read-job`. Nomad hides the allocations that a "
                      "token may not read, so that a busy node may look empty."},
    {.group = kWork,
     .key = "request_timeout",
     .type = OptionType::kDuration,
     .default_text = "10s",
     .documentation =
         "Limit of one HTTP request; it never outlives the deadline of the agent's call."},
    {.group = kWork,
     .key = "max_concurrency",
     .type = OptionType::kCount,
     .default_text = "10",
     .documentation =
         "API requests in flight per pool, 1000 at most. Waiting for a boot or a drain does not "
         "count; the Lease's renewal and the lists of a Status call are not limited."},
    {.group = kWork,
     .key = "pool_lease",
     .type = OptionType::kBool,
     .default_text = "true",
     .documentation = "Hold a Lease per pool while scaling, so that two agents never act on one "
                      "pool at once. If the token may not write Leases, one warning is logged, and "
                      "actions exclude each other only within this process."},
    {.group = kWork,
     .key = "log_level",
     .type = OptionType::kEnum,
     .default_note = "`debug` under the agent, which filters; `info` in dev mode",
     .documentation = "Lowest level that is written.",
     .enum_values = "trace,debug,info,warn,error"},
};

}  // namespace

std::span<const Option> PluginOptions() { return kPluginOptions; }

}  // namespace nomad_harvester::config
