// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/config/plugin_config.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"

#include "config_reader.h"
#include "plugin_sections.h"
#include "values.h"

namespace nomad_harvester::config {
namespace {

// More concurrent requests do not make any API server faster.
constexpr std::int64_t kLargestConcurrency = 1000;
constexpr std::string_view kTemplatePrefix = "HARVESTER_TEMPLATE_";

ValueOr<int> Concurrency(const std::string& text) {
  ValueOr<std::int64_t> count = CountUpTo(text, kLargestConcurrency);
  if (Fault* const fault = std::get_if<Fault>(&count)) return std::move(*fault);
  return static_cast<int>(std::get<std::int64_t>(count));
}

ValueOr<std::string> LogLevel(const std::string& text) {
  const std::string level = base::AsciiLower(text);
  for (const std::string_view known : {"trace", "debug", "info", "warn", "error"}) {
    if (level == known) return level;
  }
  return Fault{"must be one of trace, debug, info, warn, error", "choose one"};
}

}  // namespace

StringMap TemplateVariablesOf(const StringMap& environment) {
  StringMap variables;
  for (auto entry = environment.lower_bound(std::string(kTemplatePrefix));
       entry != environment.end() &&
       std::string_view(entry->first).substr(0, kTemplatePrefix.size()) == kTemplatePrefix;
       ++entry) {
    variables.insert(*entry);
  }
  return variables;
}

absl::StatusOr<PluginConfig> ParsePluginConfig(const StringMap& values,
                                               const Environment& environment,
                                               const StringMap& template_environment) {
  ConfigReader reader(Section::kPlugin, values, environment);
  PluginConfig config;
  ReadHarvesterSettings(reader, &config.harvester);
  ReadNomadSettings(reader, &config.nomad);
  reader.Read("allow_unverified_read_job", Boolean, &config.allow_unverified_read_job);
  reader.Read("request_timeout", PositiveDuration, &config.request_timeout);
  reader.Read("max_concurrency", Concurrency, &config.max_concurrency);
  reader.Read("pool_lease", Boolean, &config.pool_lease);
  reader.Read("log_level", LogLevel, &config.log_level);
  NH_RETURN_IF_ERROR(reader.Finish());

  config.template_environment = TemplateVariablesOf(template_environment);
  if (environment) config.own_allocation_id = environment("NOMAD_ALLOC_ID").value_or("");
  config.warnings = reader.TakeWarnings();
  return config;
}

}  // namespace nomad_harvester::config
