// SPDX-License-Identifier: Apache-2.0
// All keys, in the order of the reference and of problems, and lookups in them.
#include "nomad_harvester/config/option_table.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/policy/machine_fields.h"

namespace nomad_harvester::config {
namespace {

using enum OptionType;

// A row of a policy's target block (Status and Scale). The others are of the plugin's config block
// (SetConfig).
constexpr Option Policy(Option option) {
  option.section = Section::kPolicy;
  return option;
}

// An option of Nomad's own client: the agent injects it, perhaps empty, and the environment only
// fills what is absent (hashicorp/nomad-autoscaler:sdk/helper/nomad/config.go,
// hashicorp/nomad:api/api.go DefaultConfig).
constexpr Option Inherited(Option option) {
  option.environment_wins = false;
  option.empty_is_absent = option.type != kBool && option.type != kDuration;
  return option;
}

constexpr Option kOptions[] = {
    {.key = "harvester_url", .type = kUrl, .environment = "HARVESTER_URL"},
    {.key = "auth_token", .type = kSecret, .environment = "HARVESTER_TOKEN"},
    {.key = "auth_token_file", .type = kPath, .environment = "HARVESTER_TOKEN_FILE"},
    {.key = "harvester_kubeconfig", .type = kPath, .environment = "HARVESTER_KUBECONFIG"},
    {.key = "harvester_kubeconfig_context", .needs = "harvester_kubeconfig"},
    {.key = "harvester_ca_cert", .type = kPath},
    {.key = "harvester_client_cert", .type = kPath, .needs = "harvester_client_key"},
    {.key = "harvester_client_key", .type = kPath, .needs = "harvester_client_cert"},
    {.key = "harvester_tls_server_name"},
    {.key = "harvester_skip_verify", .type = kBool, .default_text = "false"},

    Inherited({.key = "nomad_address",
               .type = kUrl,
               .default_text = "http://127.0.0.1:4646",
               .environment = "NOMAD_ADDR,NOMAD_UNIX_ADDR"}),
    Inherited({.key = "nomad_region", .environment = "NOMAD_REGION"}),
    Inherited({.key = "nomad_namespace", .environment = "NOMAD_NAMESPACE"}),
    Inherited({.key = "nomad_token", .type = kSecret, .environment = "NOMAD_TOKEN"}),
    {.key = "nomad_token_file",
     .type = kPath,
     .environment = "NOMAD_TOKEN_FILE",
     .empty_is_absent = true},
    Inherited({.key = "nomad_http-auth", .type = kSecret, .environment = "NOMAD_HTTP_AUTH"}),
    Inherited({.key = "nomad_ca-cert", .type = kPath, .environment = "NOMAD_CACERT"}),
    Inherited({.key = "nomad_ca-path", .type = kPath, .environment = "NOMAD_CAPATH"}),
    Inherited({.key = "nomad_client-cert",
               .type = kPath,
               .environment = "NOMAD_CLIENT_CERT",
               .needs = "nomad_client-key"}),
    Inherited({.key = "nomad_client-key",
               .type = kPath,
               .environment = "NOMAD_CLIENT_KEY",
               .needs = "nomad_client-cert"}),
    Inherited({.key = "nomad_tls-server-name", .environment = "NOMAD_TLS_SERVER_NAME"}),
    Inherited({.key = "nomad_skip-verify",
               .type = kBool,
               .default_text = "false",
               .environment = "NOMAD_SKIP_VERIFY"}),
    Inherited({.key = "nomad_block-query-wait-time", .type = kDuration, .default_text = "5s"}),
    Inherited({.key = "nomad_config_inherit", .type = kBool, .default_text = "true"}),

    {.key = "request_timeout", .type = kDuration, .default_text = "10s"},
    {.key = "max_concurrency", .type = kCount, .default_text = "10"},
    {.key = "events", .type = kBool, .default_text = "true"},
    {.key = "metrics_address"},
    {.key = "log_level", .type = kEnum, .enum_values = "trace,debug,info,warn,error"},

    Policy({.key = "node_group_name", .required = true}),
    Policy({.key = "namespace", .default_text = "default"}),
    Policy({.key = "dry-run", .type = kBool, .default_text = "false"}),

    Policy({.key = "node_class"}),
    Policy({.key = "datacenter"}),
    Policy({.key = "node_pool"}),
    Policy({.key = "node_attribute", .default_text = "unique.hostname"}),
    Policy({.key = "node_filter_ignore_init", .type = kBool, .default_text = "false"}),
    Policy({.key = "node_filter_ignore_drain", .type = kBool, .default_text = "false"}),
    Policy({.key = "node_filter_ignore_ineligible", .type = kBool}),
    Policy({.key = "publish_host", .type = kBool, .default_text = "false"}),

    Policy({.key = "vm_template"}),
    Policy({.key = "image"}),
    Policy({.key = "cpu_request", .type = kCount}),
    Policy({.key = "memory_request", .type = kQuantity}),
    Policy({.key = "disk_size", .type = kQuantity}),
    Policy({.key = "data_disks", .type = kList}),
    Policy({.key = "networks", .type = kList}),
    Policy({.key = "user_data"}),
    Policy({.key = "user_data_file", .type = kPath}),
    Policy({.key = "network_data"}),
    Policy({.key = "network_data_file", .type = kPath}),
    Policy({.key = "nomad_intro_token",
            .type = kEnum,
            .default_text = "off",
            .enum_values = "off,auto,required"}),
    Policy({.key = "ssh_keys", .type = kList}),
    Policy({.key = "name_prefix"}),
    Policy({.key = "labels", .type = kMap}),
    Policy({.key = "annotations", .type = kMap}),
    Policy({.key = "tags", .type = kMap}),
    Policy({.key = "firmware", .type = kEnum, .enum_values = "bios,uefi,uefi-secure"}),
    Policy({.key = "host_devices", .type = kList}),
    Policy({.key = "gpus", .type = kList}),
    Policy({.key = "host_spread",
            .type = kEnum,
            .default_text = "preferred",
            .enum_values = "required,preferred,off"}),
    Policy({.key = "node_selector", .type = kMap}),
    Policy({.key = "availability_zones", .type = kList}),
    Policy({.key = "evenly_split_zones",
            .type = kBool,
            .default_text = "true",
            .needs = "availability_zones"}),
    Policy({.key = "run_strategy", .type = kEnum, .enum_values = "RerunOnFailure,Always,Once"}),

    Policy({.key = "ready_drivers", .type = kList}),
    Policy({.key = "join_timeout", .type = kDuration, .default_text = "15m"}),
    Policy({.key = "on_join_timeout",
            .type = kEnum,
            .default_text = "delete",
            .enum_values = "delete,keep"}),
    Policy({.key = "max_scale_out", .type = kCount}),

    Policy({.key = "host_volumes",
            .type = kEnum,
            .default_text = "protect",
            .enum_values = "protect,ignore"}),
    Policy({.key = "node_selector_strategy",
            .type = kEnum,
            .default_text = "least_busy",
            .enum_values =
                "least_busy,newest_create_index,oldest_create_index,empty,empty_ignore_system"}),
    Policy({.key = "deletion_holds", .type = kList}),
    Policy({.key = "hold_timeout", .type = kDuration, .default_text = "15m"}),
    Policy({.key = "replace_drifted",
            .type = kEnum,
            .default_text = "on_scale_in",
            .enum_values = "off,on_scale_in,rolling"}),
    Policy({.key = "drift_ignore", .type = kList}),
    Policy({.key = "node_drain_deadline", .type = kSignedDuration, .default_text = "15m"}),
    Policy({.key = "node_drain_ignore_system_jobs", .type = kBool, .default_text = "false"}),
    Policy({.key = "drain_grace", .type = kDuration, .default_text = "5m"}),
    Policy({.key = "force_after_deadline", .type = kBool, .default_text = "true"}),
    Policy({.key = "node_purge", .type = kBool, .default_text = "false"}),
    Policy({.key = "max_scale_in", .type = kCount}),
    Policy({.key = "scale_in_fit",
            .type = kEnum,
            .default_text = "report",
            .enum_values = "report,require"}),

    Policy({.key = "on_host_maintenance",
            .type = kEnum,
            .default_text = "report",
            .enum_values = "report,evacuate"}),
    Policy({.key = "expire_after", .type = kDuration}),
    Policy({.key = "replacement_window"}),
    Policy({.key = "max_surge", .type = kCount, .default_text = "1"}),
    Policy({.key = "max_unavailable", .type = kCount, .default_text = "0"}),
    Policy({.key = "replace_unhealthy_after", .type = kDuration}),
    Policy({.key = "max_unhealthy",
            .type = kShare,
            .default_text = "20%",
            .needs = "replace_unhealthy_after"}),
};
constexpr std::string_view kFirstAfterMachineFields = "ready_drivers";

OptionType TypeOf(policy::FieldType type) {
  switch (type) {
    case policy::FieldType::kChoice:
      return kEnum;
    case policy::FieldType::kFlag:
      return kBool;
    case policy::FieldType::kQuantity:
      return kQuantity;
    case policy::FieldType::kSeconds:
      return kDuration;
    case policy::FieldType::kObjectName:
    case policy::FieldType::kCpuModel:
      break;
  }
  return kString;
}

std::vector<Option> WithMachineFields() {
  std::vector<Option> all(std::begin(kOptions), std::end(kOptions));
  auto end = std::find_if(all.begin(), all.end(), [](const Option& option) {
    return option.key == kFirstAfterMachineFields;
  });
  for (const policy::MachineField& field : policy::MachineFields()) {
    end = all.insert(
        end, Policy({.key = field.key, .type = TypeOf(field.type), .enum_values = field.choices}));
    ++end;
  }
  return all;
}

// Longer names are not typing errors, and the time for the distance grows with the length.
constexpr std::size_t kMaxCompared = 64;
// Keys of policies that were written for earlier versions.
constexpr std::string_view kRetired[] = {"scale_in_wait", "scale_timeout", "wait_for"};

}  // namespace

std::span<const Option> OptionTable() {
  static const auto* const kAll = new std::vector<Option>(WithMachineFields());
  return *kAll;
}

std::span<const Option> OptionsOf(Section section) {
  const std::span<const Option> all = OptionTable();
  const auto policy = std::find_if(all.begin(), all.end(), [](const Option& option) {
    return option.section == Section::kPolicy;
  });
  const auto of_plugin = static_cast<std::size_t>(policy - all.begin());
  return section == Section::kPlugin ? all.first(of_plugin) : all.subspan(of_plugin);
}

const Option* FindOption(Section section, std::string_view key) {
  const std::span<const Option> options = OptionsOf(section);
  const auto found = std::find_if(options.begin(), options.end(),
                                  [key](const Option& option) { return option.key == key; });
  return found == options.end() ? nullptr : &*found;
}

std::optional<std::string> NearestKey(std::string_view key, const std::vector<std::string>& keys) {
  constexpr std::size_t kShortest = 3;
  std::optional<std::string> nearest = base::NearestName(key, keys);
  if (nearest.has_value() || key.size() < kShortest) return nearest;
  std::vector<std::string> begun;
  std::vector<std::string> similar;
  for (const std::string& each : keys) {
    if (each.starts_with(key)) begun.push_back(each);
    const bool is_similar =
        each.find(key) != std::string::npos || key.find(each) != std::string_view::npos;
    if (is_similar) similar.push_back(each);
  }
  if (begun.size() == 1) return begun.front();
  if (similar.size() == 1) return similar.front();
  return std::nullopt;
}

std::string UnknownKeyHint(Section section, std::string_view key) {
  const bool in_plugin = section == Section::kPlugin;
  if (!in_plugin &&
      std::find(std::begin(kRetired), std::end(kRetired), key) != std::end(kRetired)) {
    return "remove it: a Scale is accepted within a minute, and the background does the rest (C16)";
  }
  if (FindOption(in_plugin ? Section::kPolicy : Section::kPlugin, key) != nullptr) {
    return in_plugin ? "it belongs in the policy's target block"
                     : "it belongs in the plugin's config of the agent";
  }
  key = key.substr(0, kMaxCompared);
  std::vector<std::string> known;
  for (const Option& option : OptionsOf(section)) known.emplace_back(option.key);
  const std::optional<std::string> typo = NearestKey(key, known);
  if (typo) return "did you mean " + *typo + "?";
  std::vector<std::size_t> distances(known.size());
  std::transform(known.begin(), known.end(), distances.begin(),
                 [key](const std::string& option) { return base::EditDistance(key, option); });
  const auto nearest = std::min_element(distances.begin(), distances.end()) - distances.begin();
  return "the nearest known key is " + known[static_cast<std::size_t>(nearest)];
}

}  // namespace nomad_harvester::config
