// SPDX-License-Identifier: Apache-2.0
// Parses the plugin block, a target or an apm, which SetConfig receives.
#ifndef NOMAD_HARVESTER_CONFIG_PLUGIN_CONFIG_H_
#define NOMAD_HARVESTER_CONFIG_PLUGIN_CONFIG_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "nomad_harvester/base/secret.h"
#include "nomad_harvester/base/time.h"

#include "absl/status/statusor.h"

namespace nomad_harvester::config {

using StringMap = std::map<std::string, std::string>;

struct HarvesterSettings {
  std::string url;
  base::Secret token;
  std::string token_file;
  std::string kubeconfig_path;
  std::string kubeconfig_context;
  std::string ca_cert_file;
  std::string client_cert_file;
  std::string client_key_file;
  std::string tls_server_name;
  bool skip_verify = false;

  bool has_server() const { return !url.empty() || !kubeconfig_path.empty(); }
};

struct NomadSettings {
  std::string address;  // never empty; default http://127.0.0.1:4646
  std::string region;
  std::string ns;
  base::Secret token;
  std::string token_file;
  base::Secret http_auth;
  std::string ca_cert;
  std::string ca_path;
  std::string client_cert;
  std::string client_key;
  std::string tls_server_name;
  bool skip_verify = false;
  base::Duration block_query_wait = std::chrono::seconds(5);
};

// Immutable after parsing; shared by all operations that use this configuration.
struct PluginConfig {
  HarvesterSettings harvester;
  NomadSettings nomad;
  base::Duration request_timeout = std::chrono::seconds(10);
  std::int64_t max_concurrency = 10;
  bool events = true;
  std::string metrics_address;  // "IP:PORT", "[IPv6]:PORT" or "localhost:PORT"; empty: none
  std::string log_level;        // empty: the default of the command
  // The variables HARVESTER_TEMPLATE_* for {{env.NAME}} in user data, by full name.
  StringMap template_environment;
  // The autoscaler's own allocation (NOMAD_ALLOC_ID), whose node is never removed. Empty: none.
  std::string own_allocation_id;
  // Every given secret, used or not, and values of other keys that may be secrets. Kept so that
  // base::WithoutSecrets recognises them in texts.
  std::vector<base::Secret> secrets;
  // Each is logged once at WARN. They never contain secrets.
  std::vector<std::string> warnings;
  // Additional warnings about token files that do not exist yet: they may be written later.
  std::vector<std::string> missing_token_files;
};

// Returns the variables that user data may use (HARVESTER_TEMPLATE_*), by name.
StringMap TemplateVariablesOf(const StringMap& environment);

// INVALID_ARGUMENT lists all problems, one per line, "key: what is wrong; hint", in the order of
// OptionTable(). Unknown keys come last, with the nearest known key as a hint. Neither problems nor
// warnings contain secrets. Sends no requests and reads no files, but checks that every file and
// directory named here exists; a missing auth_token_file or nomad_token_file is only a warning.
absl::StatusOr<PluginConfig> ParsePluginConfig(const StringMap& values,
                                               const StringMap& environment);

// Likewise for an apm block, which needs Harvester for some queries only: unless it has a key of
// Harvester's connection, its variables are not read either.
absl::StatusOr<PluginConfig> ParseApmConfig(const StringMap& values, const StringMap& environment);

}  // namespace nomad_harvester::config

#endif  // NOMAD_HARVESTER_CONFIG_PLUGIN_CONFIG_H_
