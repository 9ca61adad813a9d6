// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/config/plugin_config.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>

#include "nomad_harvester/base/encoding.h"
#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/base/text.h"

#include "absl/strings/str_split.h"
#include "config_reader.h"
#include "values.h"

namespace nomad_harvester::config {
namespace {

namespace fs = std::filesystem;

// More concurrent requests do not make any API server faster.
constexpr std::int64_t kLargestConcurrency = 1000;
constexpr char kNoFile[] = "no such file";
constexpr std::string_view kTemplatePrefix = "HARVESTER_TEMPLATE_";

ValueOr<std::int64_t> Concurrency(const std::string& text) {
  return CountUpTo(text, kLargestConcurrency);
}

ValueOr<std::string> LogLevel(const std::string& text) {
  return OneOfNames({"trace", "debug", "info", "warn", "error"}, base::AsciiLower(text));
}

// True if the text is a path. Tokens do not start like one (a JWT starts with "ey", Rancher's and
// Nomad's tokens with letters or digits), and neither do keys ("MI…", "LS0t…").
bool LooksLikePath(std::string_view text) {
  return text.starts_with('/') || text.starts_with("./") || text.starts_with("../");
}

// Says why `path` does not name a file (or directory) of the requested type; nullopt if it does.
// Reads nothing; follows symbolic links.
std::optional<Fault> FindFault(const std::string& path, fs::file_type wanted) {
  std::error_code error;
  const fs::file_type type = fs::status(path, error).type();
  const bool directory = wanted == fs::file_type::directory;
  if (type == wanted) return std::nullopt;
  if (type == fs::file_type::not_found) {
    return Fault{directory ? "no such directory" : kNoFile,
                 "correct the path, as the autoscaler's agent sees it"};
  }
  if (type == fs::file_type::none) {
    return Fault{"cannot be examined: " + error.message(), "let the agent's user read it"};
  }
  return Fault{directory ? "is not a directory" : "is not a regular file", "correct the path"};
}

ValueOr<std::string> PathTo(fs::file_type wanted, const std::string& text) {
  if (base::HoldsPem(text)) {
    return Fault{"is PEM itself instead of a path", "write it to a file and give the file's path",
                 false};
  }
  ValueOr<std::string> checked = FilePath(text);
  if (std::holds_alternative<Fault>(checked)) return checked;
  if (std::optional<Fault> fault = FindFault(text, wanted)) return *std::move(fault);
  return checked;
}
ValueOr<std::string> RegularFile(const std::string& text) {
  return PathTo(fs::file_type::regular, text);
}
// Parses the file of a key. The value is not shown if it may be the key itself.
ValueOr<std::string> KeyFilePath(const std::string& text) {
  ValueOr<std::string> path = RegularFile(text);
  if (Fault* const fault = std::get_if<Fault>(&path); fault != nullptr && !LooksLikePath(text)) {
    if (fault->show_value) fault->what += "; the value is not shown, it may be the key itself";
    fault->show_value = false;
  }
  return path;
}
// One file, or several with ":" between them, of which one must exist, as kubectl's KUBECONFIG.
ValueOr<std::string> Kubeconfigs(const std::string& text) {
  ValueOr<std::string> whole = RegularFile(text);
  if (std::holds_alternative<std::string>(whole)) return whole;
  for (const absl::string_view path : absl::StrSplit(text, ':', absl::SkipEmpty())) {
    if (std::holds_alternative<std::string>(RegularFile(std::string(path)))) return text;
  }
  return whole;
}
ValueOr<std::string> DirectoryPath(const std::string& text) {
  return PathTo(fs::file_type::directory, text);
}

// Reads a token file. A missing file is only a warning. The messages omit any value that could be
// the token itself, given in the wrong key.
void ReadTokenFile(ConfigReader& reader, std::string_view key, const GivenValue& given,
                   std::string* path, std::vector<std::string>* missing) {
  ValueOr<std::string> path_or_fault = RegularFile(given.value);
  if (Fault* const fault = std::get_if<Fault>(&path_or_fault)) {
    const bool shown = LooksLikePath(given.value);
    if (fault->what == kNoFile) {
      missing->push_back(std::string(key) + ": " + kNoFile + " yet" +
                         (shown ? ": " + Quote(given.value)
                                : "; the value is not shown, it may be the token itself"));
      path_or_fault = given.value;
      if (!shown) reader.AddSecret(given.value);
    } else {
      fault->show_value = fault->show_value && shown;
    }
  }
  reader.Take(key, std::move(path_or_fault), path, given);
}

constexpr char kToken[] = "auth_token";
constexpr char kTokenFile[] = "auth_token_file";

// A token or token file from the environment overrides both keys of the map. A source with both is
// an error.
void ReadCredentials(ConfigReader& reader, PluginConfig* config) {
  HarvesterSettings* const settings = &config->harvester;
  std::optional<GivenValue> token = reader.FindInEnvironment(kToken);
  std::optional<GivenValue> file = reader.FindInEnvironment(kTokenFile);
  const std::optional<GivenValue> token_in_map = reader.FindInMap(kToken);
  const std::optional<GivenValue> file_in_map = reader.FindInMap(kTokenFile);
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
  if (token) reader.Take(kToken, Token(token->value), &settings->token, *token);
  if (file) {
    ReadTokenFile(reader, kTokenFile, *file, &settings->token_file, &config->missing_token_files);
  }
}

void ReadHarvesterSettings(ConfigReader& reader, PluginConfig* config) {
  HarvesterSettings* const settings = &config->harvester;
  const bool has_url = reader.Find("harvester_url").has_value();
  reader.Read("harvester_url", HttpUrl, &settings->url);
  ReadCredentials(reader, config);
  const bool has_kubeconfig = reader.Find("harvester_kubeconfig").has_value();
  reader.Read("harvester_kubeconfig", Kubeconfigs, &settings->kubeconfig_path);
  reader.Read("harvester_kubeconfig_context", Text, &settings->kubeconfig_context);
  reader.Read("harvester_ca_cert", RegularFile, &settings->ca_cert_file);
  reader.Read("harvester_client_cert", RegularFile, &settings->client_cert_file);
  reader.Read("harvester_client_key", KeyFilePath, &settings->client_key_file);
  reader.Read("harvester_tls_server_name", HostName, &settings->tls_server_name);
  reader.Read("harvester_skip_verify", Boolean, &settings->skip_verify);

  if (!has_url && !has_kubeconfig) {
    reader.AddProblem("harvester_url", "required, but absent",
                      "add it or harvester_kubeconfig, or set HARVESTER_URL or "
                      "HARVESTER_KUBECONFIG");
  }
}

bool IsOfHarvester(std::string_view key) {
  return key.starts_with("harvester_") || key.starts_with("auth_token");
}

void ReadNomadSettings(ConfigReader& reader, PluginConfig* config) {
  NomadSettings* const settings = &config->nomad;
  reader.Read("nomad_address", NomadAddress, &settings->address);
  reader.Read("nomad_region", Text, &settings->region);
  reader.Read("nomad_namespace", Text, &settings->ns);
  reader.Read("nomad_token", Token, &settings->token);
  if (const std::optional<GivenValue> file = reader.Find("nomad_token_file")) {
    ReadTokenFile(reader, "nomad_token_file", *file, &settings->token_file,
                  &config->missing_token_files);
  }
  reader.Read("nomad_http-auth", SecretText, &settings->http_auth);
  reader.Read("nomad_ca-cert", RegularFile, &settings->ca_cert);
  reader.Read("nomad_ca-path", DirectoryPath, &settings->ca_path);
  reader.Read("nomad_client-cert", RegularFile, &settings->client_cert);
  reader.Read("nomad_client-key", KeyFilePath, &settings->client_key);
  reader.Read("nomad_tls-server-name", HostName, &settings->tls_server_name);
  reader.Read("nomad_skip-verify", Boolean, &settings->skip_verify);
  reader.Read("nomad_block-query-wait-time", PositiveDuration, &settings->block_query_wait);
  // The agent uses this key; the plugin only checks its value.
  bool inherit = true;
  reader.Read("nomad_config_inherit", Boolean, &inherit);
}

void ReadWorkSettings(ConfigReader& reader, PluginConfig* config) {
  reader.Read("request_timeout", PositiveDuration, &config->request_timeout);
  reader.Read("max_concurrency", Concurrency, &config->max_concurrency);
  reader.Read("metrics_address", ListenAddress, &config->metrics_address);
  reader.Read("log_level", LogLevel, &config->log_level);
}

}  // namespace

StringMap TemplateVariablesOf(const StringMap& environment) {
  StringMap variables;
  for (auto entry = environment.lower_bound(std::string(kTemplatePrefix));
       entry != environment.end() && entry->first.starts_with(kTemplatePrefix); ++entry) {
    variables.insert(*entry);
  }
  return variables;
}

absl::StatusOr<PluginConfig> ParsePluginConfig(const StringMap& values,
                                               const StringMap& environment) {
  ConfigReader reader(Section::kPlugin, values, environment);
  PluginConfig config;
  ReadHarvesterSettings(reader, &config);
  ReadNomadSettings(reader, &config);
  ReadWorkSettings(reader, &config);
  reader.Read("events", Boolean, &config.events);
  NH_RETURN_IF_ERROR(reader.Finish());

  config.template_environment = TemplateVariablesOf(environment);
  config.own_allocation_id = base::ValueOf(environment, "NOMAD_ALLOC_ID");
  config.warnings = reader.TakeWarnings();
  config.secrets = reader.TakeSecrets();
  // User data often receives its passwords this way. Shorter values are words of other texts, too.
  constexpr std::size_t kLikeASecret = 16;
  for (const auto& [name, value] : config.template_environment) {
    if (value.size() >= kLikeASecret) config.secrets.emplace_back(value);
  }
  return config;
}

absl::StatusOr<PluginConfig> ParseApmConfig(const StringMap& values, const StringMap& environment) {
  ConfigReader reader(Section::kPlugin, values, environment);
  PluginConfig config;
  const auto options = OptionsOf(Section::kPlugin);
  if (std::any_of(options.begin(), options.end(), [&](const Option& option) {
        return IsOfHarvester(option.key) && values.contains(std::string(option.key));
      })) {
    ReadHarvesterSettings(reader, &config);
  }
  ReadNomadSettings(reader, &config);
  ReadWorkSettings(reader, &config);
  for (const auto& [key, value] : values) {
    const std::string meant = "nomad_" + key;
    if (FindOption(Section::kPlugin, meant) == nullptr || !reader.FindInMap(key)) continue;
    reader.AddProblem(key, "unknown key", "did you mean " + meant + "?");
  }
  if (reader.FindInMap("events")) {
    reader.AddProblem("events", "not a key of an apm block, which changes nothing",
                      "it belongs in the target block");
  }
  NH_RETURN_IF_ERROR(reader.Finish());
  config.warnings = reader.TakeWarnings();
  config.secrets = reader.TakeSecrets();
  return config;
}

}  // namespace nomad_harvester::config
