// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <string>

#include "files.h"
#include "plugin_sections.h"
#include "urls.h"
#include "values.h"

namespace nomad_harvester::config {
namespace {

void ReadTls(ConfigReader& reader, NomadSettings* settings) {
  ReadFilePath(reader, "nomad_ca-cert", &settings->ca_cert);
  ReadDirectoryPath(reader, "nomad_ca-path", &settings->ca_path);
  ReadKeyPairPaths(reader, "nomad_client-cert", "nomad_client-key", &settings->client_cert,
                   &settings->client_key);
  reader.Read("nomad_tls-server-name", HostName, &settings->tls_server_name);
  reader.Read("nomad_skip-verify", Boolean, &settings->skip_verify);
}

}  // namespace

void ReadNomadSettings(ConfigReader& reader, NomadSettings* settings) {
  reader.Read("nomad_address", NomadAddress, &settings->address);
  reader.Read("nomad_region", Text, &settings->region);
  reader.Read("nomad_namespace", Text, &settings->ns);
  reader.Read("nomad_token", Token, &settings->token);
  if (const std::optional<Given> file = reader.Find("nomad_token_file")) {
    CheckTokenFile(reader, "nomad_token_file", *file, &settings->token_file);
  }
  reader.Read("nomad_http-auth", SecretText, &settings->http_auth);
  ReadTls(reader, settings);
  reader.Read("nomad_block-query-wait-time", PositiveDuration, &settings->block_query_wait);
  // The agent uses this key; the plugin only checks its value.
  bool inherit = true;
  reader.Read("nomad_config_inherit", Boolean, &inherit);
}

}  // namespace nomad_harvester::config
