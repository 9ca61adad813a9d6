// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <string>

#include "files.h"
#include "plugin_sections.h"
#include "urls.h"
#include "values.h"

namespace nomad_harvester::config {
namespace {

constexpr char kToken[] = "auth_token";
constexpr char kTokenFile[] = "auth_token_file";

// A token or token file from the environment overrides both keys of the map. A source that has both
// is an error.
void ReadCredentials(ConfigReader& reader, HarvesterSettings* settings) {
  std::optional<Given> token = reader.FindInEnvironment(kToken);
  std::optional<Given> file = reader.FindInEnvironment(kTokenFile);
  const std::optional<Given> token_in_map = reader.FindInMap(kToken);
  const std::optional<Given> file_in_map = reader.FindInMap(kTokenFile);
  if (token && file) {
    reader.AddProblem(kToken, token->variable + " and " + file->variable + " are both set",
                      "unset one of them");
  }
  if (token_in_map && file_in_map) {
    reader.AddProblem(kToken, "given together with auth_token_file", "remove one of them");
  }
  if (!token && !file) {
    token = token_in_map;
    file = file_in_map;
  }
  if (token) {
    ValueOr<base::Secret> secret = Token(token->value);
    if (const Fault* const fault = std::get_if<Fault>(&secret)) {
      reader.AddFault(kToken, *fault, *token);
    } else {
      settings->token = std::get<base::Secret>(std::move(secret));
    }
  }
  if (file) CheckTokenFile(reader, kTokenFile, *file, &settings->token_file);
}

void ReadTls(ConfigReader& reader, HarvesterSettings* settings) {
  ReadFilePath(reader, "harvester_ca_cert", &settings->ca_cert_file);
  ReadKeyPairPaths(reader, "harvester_client_cert", "harvester_client_key",
                   &settings->client_cert_file, &settings->client_key_file);
  reader.Read("harvester_tls_server_name", HostName, &settings->tls_server_name);
  reader.Read("harvester_skip_verify", Boolean, &settings->skip_verify);
  if (settings->skip_verify) {
    reader.AddWarning("harvester_skip_verify",
                      "Harvester's certificate is not verified: an attacker on the network can "
                      "read the token");
  }
}

}  // namespace

void ReadHarvesterSettings(ConfigReader& reader, HarvesterSettings* settings) {
  const bool has_url = reader.Find("harvester_url").has_value();
  reader.Read("harvester_url", HttpUrl, &settings->url);
  ReadCredentials(reader, settings);
  const bool has_kubeconfig = reader.Find("harvester_kubeconfig").has_value();
  ReadFilePath(reader, "harvester_kubeconfig", &settings->kubeconfig_path);
  reader.Read("harvester_kubeconfig_context", Text, &settings->kubeconfig_context);
  ReadTls(reader, settings);

  if (!has_url && !has_kubeconfig) {
    reader.AddProblem("harvester_url", "required, but absent",
                      "add it or harvester_kubeconfig, or set HARVESTER_URL or "
                      "HARVESTER_KUBECONFIG");
  }
  if (!settings->kubeconfig_context.empty() && !has_kubeconfig) {
    reader.AddWarning("harvester_kubeconfig_context", "has no effect without a kubeconfig");
  }
}

}  // namespace nomad_harvester::config
