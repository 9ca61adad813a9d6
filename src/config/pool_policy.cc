// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/config/pool_policy.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"

#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "config_reader.h"
#include "values.h"

namespace nomad_harvester::config {
namespace {

constexpr std::size_t kMaxPool = 40;
// "<prefix>-<8 random characters>" has 50 characters at most.
constexpr std::size_t kMaxPrefix = 41;
// QEMU's limit of vCPUs per machine.
constexpr std::int64_t kMaxCores = 4096;
// No VM that runs a Nomad client has less; "4" would mean four bytes.
constexpr std::int64_t kMinMemory = std::int64_t{64} * 1024 * 1024;
constexpr char kGrpcTimeout[] = "_nomad_autoscaler_grpc_timeout";
constexpr std::string_view kHostPrefix = "_nomad_autoscaler_";

constexpr policy::Choice<OnJoinTimeout> kOnJoinTimeout[] = {
    {"delete", OnJoinTimeout::kDelete},
    {"keep", OnJoinTimeout::kKeep},
};
constexpr policy::Choice<HostVolumes> kHostVolumes[] = {
    {"protect", HostVolumes::kProtect},
    {"ignore", HostVolumes::kIgnore},
};
constexpr policy::Choice<ScaleInFit> kScaleInFit[] = {
    {"report", ScaleInFit::kReport},
    {"require", ScaleInFit::kRequire},
};
constexpr policy::Choice<ReplaceDrifted> kReplaceDrifted[] = {
    {"off", ReplaceDrifted::kOff},
    {"on_scale_in", ReplaceDrifted::kOnScaleIn},
    {"rolling", ReplaceDrifted::kRolling},
};
constexpr policy::Choice<HostMaintenance> kHostMaintenance[] = {
    {"report", HostMaintenance::kReport},
    {"evacuate", HostMaintenance::kEvacuate},
};
constexpr policy::Choice<IntroToken> kIntroToken[] = {
    {"off", IntroToken::kOff},
    {"auto", IntroToken::kAuto},
    {"required", IntroToken::kRequired},
};

ValueOr<policy::RunStrategy> RunStrategy(const std::string& text) {
  // kubevirt/kubevirt:staging/src/kubevirt.io/api/core/v1/types.go, VirtualMachineRunStrategy.
  for (const std::string_view other : {"Manual", "Halted", "WaitAsReceiver"}) {
    if (text == other) {
      return Fault{"never boots a VM", "choose RerunOnFailure, Always or Once"};
    }
  }
  return OneOf(policy::kRunStrategies)(text);
}

ValueOr<std::string> PoolLabel(const std::string& text) { return DnsLabel(text, kMaxPool); }
ValueOr<std::string> NamePrefix(const std::string& text) { return DnsLabel(text, kMaxPrefix); }
ValueOr<std::string> Namespace(const std::string& text) { return DnsLabel(text, 63); }
ValueOr<std::int64_t> Memory(const std::string& text) {
  return BytesFrom(text, kMinMemory, "64Mi");
}
ValueOr<std::int64_t> Disk(const std::string& text) { return BytesFrom(text, kMinDisk, "1Mi"); }
ValueOr<std::int64_t> Cores(const std::string& text) { return CountUpTo(text, kMaxCores); }

// Work and queries may name it, but Nomad refuses it to a node
// (hashicorp/nomad:nomad/node_endpoint.go, Register).
ValueOr<std::string> NodePool(const std::string& text) {
  if (text == "all") {
    return Fault{"is Nomad's word for every node pool, and no node is in it",
                 "give the node pool in which the nodes register, such as default"};
  }
  return AnyText(text);
}

void ReadIdentity(ConfigReader& reader, PoolPolicy* policy) {
  bool present = false;
  for (const auto& [key, target] :
       {std::pair("node_class", &policy->node_class), std::pair("datacenter", &policy->datacenter),
        std::pair("node_pool", &policy->node_pool)}) {
    present = reader.Find(key).has_value() || present;
    reader.Read(key, target == &policy->node_pool ? NodePool : AnyText, target);
    if (target->has_value() && (*target)->empty()) {
      reader.AddWarning(key, "is empty and matches no node");
    }
  }
  if (!present) {
    // The SDK's message (hashicorp/nomad-autoscaler:sdk/helper/scaleutils/nodepool/nodepool.go).
    reader.AddProblem("node_class", "node pool identification method required",
                      "give at least one of node_class, datacenter and node_pool");
  }
}

void ReadNodes(ConfigReader& reader, PoolPolicy* policy) {
  ReadIdentity(reader, policy);
  reader.Read("node_attribute", NodeAttribute, &policy->node_attribute);
  reader.Read("node_filter_ignore_init", Boolean, &policy->filter_ignore_init);
  reader.Read("node_filter_ignore_drain", Boolean, &policy->filter_ignore_drain);
  reader.Read("node_filter_ignore_ineligible", Boolean, &policy->filter_ignore_ineligible);
  reader.Read("publish_host", Boolean, &policy->publish_host);
}

void ReadTemplate(ConfigReader& reader, const std::string& key, std::optional<std::string>* text,
                  std::optional<std::string>* file) {
  const std::string file_key = key + "_file";
  reader.Read(key, Text, text);
  reader.Read(file_key, FilePath, file);
  const std::string given = text->value_or("");
  const std::string_view line = base::TrimAsciiSpace(given);
  if (line.starts_with('/') && line.find('\n') == std::string_view::npos) {
    reader.AddWarning(
        key, "is the path of a file, and should be the text itself: give the path as " + file_key);
  }
  if (reader.Find(key).has_value() && reader.Find(file_key).has_value()) {
    reader.AddProblem(key, "given together with " + file_key, "remove one of them");
  }
}

// Files are checked before a VM is made.
void CheckIntroTokenIsUsed(ConfigReader& reader, const PoolPolicy& policy) {
  if (policy.intro_token == IntroToken::kOff || policy.user_data_file.has_value() ||
      policy.network_data_file.has_value()) {
    return;
  }
  for (const auto& source : {policy.user_data, policy.network_data}) {
    if (source.has_value() && source->find("nomad_intro_token") != std::string::npos) return;
  }
  reader.AddProblem("nomad_intro_token", "no template contains {{nomad_intro_token}}",
                    "let user_data write it to Nomad's intro_token.jwt, or remove the key");
}

void ReadCloudInit(ConfigReader& reader, PoolPolicy* policy) {
  ReadTemplate(reader, "user_data", &policy->user_data, &policy->user_data_file);
  ReadTemplate(reader, "network_data", &policy->network_data, &policy->network_data_file);
  if (reader.Find("user_data").has_value()) {
    // hashicorp/nomad-autoscaler:policy/manager.go logs target_config at INFO.
    reader.AddWarning("user_data",
                      "the agent writes the whole block of a policy to its log at every "
                      "evaluation, inline user data included; user_data_file keeps it out");
  }
  reader.Read("nomad_intro_token", OneOf(kIntroToken), &policy->intro_token);
  CheckIntroTokenIsUsed(reader, *policy);
}

// Harvester's upgrade and its maintenance mode stop at VMs that cannot be migrated
// (harvester/harvester:pkg/util/virtualmachineinstance/virtualmachineinstance.go,
// pkg/controller/master/nodedrain/nodedrain_controller.go).
constexpr char kNotMigrated[] =
    " cannot be live-migrated: they block Harvester's upgrades and the maintenance of their hosts "
    "until they are stopped or removed";

void ReadDevices(ConfigReader& reader, PoolPolicy* policy) {
  reader.Read("data_disks", DataDisks, &policy->data_disks);
  if (std::any_of(policy->data_disks.begin(), policy->data_disks.end(),
                  [](const policy::DataDisk& disk) { return disk.read_write_once; })) {
    reader.AddWarning("data_disks", std::string("VMs with a volume \":rwo\"") + kNotMigrated);
  }
  for (const auto& [key, devices] :
       {std::pair("host_devices", &policy->host_devices), std::pair("gpus", &policy->gpus)}) {
    reader.Read(key, DeviceRequests, devices);
    if (!devices->empty()) {
      reader.AddWarning(key, std::string("VMs with devices of their host") + kNotMigrated);
    }
  }
}

constexpr char kZoneLabel[] = "topology.kubernetes.io/zone";

void ReadPlacement(ConfigReader& reader, PoolPolicy* policy) {
  reader.Read("host_spread", OneOf(policy::kHostSpreads), &policy->host_spread);
  if (policy->host_spread == policy::HostSpread::kRequired) {
    reader.AddWarning("host_spread",
                      "required: the pool cannot have more VMs than Harvester has hosts, and while "
                      "every host has one, none can be migrated, which blocks the maintenance of "
                      "hosts and Harvester's upgrades");
  }
  reader.Read("node_selector", HostLabels, &policy->node_selector);
  if (policy->node_selector.contains("kubernetes.io/hostname")) {
    reader.AddWarning("node_selector",
                      std::string("VMs that only one host may run") + kNotMigrated);
  }
  reader.Read("availability_zones", Zones, &policy->zones);
  reader.Read("evenly_split_zones", Boolean, &policy->evenly_split_zones);
  if (!policy->zones.empty() && policy->node_selector.contains(kZoneLabel)) {
    reader.AddProblem("availability_zones",
                      std::string("given together with ") + kZoneLabel + " in node_selector",
                      "remove one of them");
  }
}

std::vector<std::string> Names(std::string_view choices) {
  return absl::StrSplit(base::ToAbsl(choices), ',');
}

template <typename T, typename Parse>
void ReadValue(ConfigReader& reader, std::string_view key, Parse parse,
               policy::MachineValues* values) {
  std::optional<T> value;
  reader.Read(key, parse, &value);
  if (value.has_value()) values->emplace(key, *std::move(value));
}

void ReadField(ConfigReader& reader, const policy::MachineField& field,
               policy::MachineValues* values) {
  using enum policy::FieldType;
  switch (field.type) {
    case kObjectName:
      return ReadValue<std::string>(reader, field.key, ObjectName, values);
    case kCpuModel:
      return ReadValue<std::string>(reader, field.key, CpuModel, values);
    case kChoice:
      return ReadValue<std::string>(
          reader, field.key,
          [&field](const std::string& text) { return OneOfNames(Names(field.choices), text); },
          values);
    case kFlag:
      return ReadValue<bool>(reader, field.key, Boolean, values);
    case kQuantity:
      return ReadValue<std::int64_t>(reader, field.key, Bytes, values);
    case kSeconds:
      return ReadValue<std::int64_t>(reader, field.key, WholeSeconds, values);
  }
}

// Requires the keys that describe a VM, unless a template provides them.
void ReadTemplateOrRequire(ConfigReader& reader, PoolPolicy* policy) {
  reader.Read("vm_template", TemplateReference, &policy->vm_template);
  if (reader.Find("vm_template").has_value()) return;
  for (const char* const key : {"image", "cpu_request", "memory_request", "networks"}) {
    if (reader.Find(key).has_value()) continue;
    reader.AddProblem(key, "required, but absent",
                      "add it to the policy's target block, or a vm_template that has it");
  }
}

void ReadMachine(ConfigReader& reader, PoolPolicy* policy) {
  ReadTemplateOrRequire(reader, policy);
  reader.Read("image", ImageRef, &policy->image);
  reader.Read("cpu_request", Cores, &policy->cpu_cores);
  reader.Read("memory_request", Memory, &policy->memory_bytes);
  reader.Read("disk_size", Disk, &policy->disk_bytes);
  reader.Read("networks", Networks, &policy->networks);
  ReadCloudInit(reader, policy);
  reader.Read("ssh_keys", ResourceRefs, &policy->ssh_keys);
  policy->name_prefix = policy->pool;
  reader.Read("name_prefix", NamePrefix, &policy->name_prefix);
  reader.Read("labels", Labels, &policy->labels);
  reader.Read("annotations", Annotations, &policy->annotations);
  reader.Read("tags", Tags, &policy->tags);
  for (const auto& [key, value] : policy->tags) {
    if (policy->labels.count("tag.harvesterhci.io/" + key) > 0) {
      reader.AddProblem("tags", Quote(key) + " is given in labels, too", "remove one of them");
    }
  }
  reader.Read("firmware", OneOf(policy::kFirmwares), &policy->firmware);
  ReadDevices(reader, policy);
  ReadPlacement(reader, policy);
  reader.Read("run_strategy", RunStrategy, &policy->run_strategy);
  for (const policy::MachineField& field : policy::MachineFields()) {
    ReadField(reader, field, &policy->machine);
  }
}

// Turns an error of several lines into a problem of one line.
void CheckTemplates(ConfigReader& reader, const TemplateCheck& check, const PoolPolicy& policy) {
  for (const auto& [key, source] : {std::pair("user_data", &policy.user_data),
                                    std::pair("network_data", &policy.network_data)}) {
    if (!source->has_value()) continue;
    const absl::Status checked = check(policy, key, **source);
    if (checked.ok()) continue;
    reader.AddProblem(key, absl::StrReplaceAll(base::Message(checked), {{"\n", "; "}}), "");
  }
}

void ReadGrowth(ConfigReader& reader, PoolPolicy* policy) {
  reader.Read("ready_drivers", Drivers, &policy->ready_drivers);
  reader.Read("join_timeout", PositiveDuration, &policy->join_timeout);
  reader.Read("host_volumes", OneOf(kHostVolumes), &policy->host_volumes);
  reader.Read("on_join_timeout", OneOf(kOnJoinTimeout), &policy->on_join_timeout);
  reader.Read("max_scale_out", Count, &policy->max_scale_out);
}

void ReadShrinking(ConfigReader& reader, PoolPolicy* policy) {
  reader.Read("node_selector_strategy", OneOf(policy::kSelectorStrategies), &policy->selector);
  reader.Read("node_drain_deadline", SignedDuration, &policy->drain_deadline);
  reader.Read("node_drain_ignore_system_jobs", Boolean, &policy->drain_ignore_system_jobs);
  reader.Read("drain_grace", PositiveDuration, &policy->drain_grace);
  reader.Read("force_after_deadline", Boolean, &policy->force_after_deadline);
  reader.Read("node_purge", Boolean, &policy->node_purge);
  reader.Read("deletion_holds", Holds, &policy->deletion_holds);
  reader.Read("hold_timeout", PositiveDuration, &policy->hold_timeout);
  reader.Read("replace_drifted", OneOf(kReplaceDrifted), &policy->replace_drifted);
  reader.Read("drift_ignore", TemplatePartList, &policy->drift_ignore);
  reader.Read("max_scale_in", Count, &policy->max_scale_in);
  reader.Read("scale_in_fit", OneOf(kScaleInFit), &policy->scale_in_fit);
}

// Reads how many VMs are replaced at the same time. Each of the two keys determines the other's
// default.
void ReadBudget(ConfigReader& reader, PoolPolicy* policy) {
  reader.Read("max_surge", CountOrZero, &policy->max_surge);
  reader.Read("max_unavailable", CountOrZero, &policy->max_unavailable);
  if (policy->max_unavailable > 0 && !reader.Find("max_surge").has_value()) policy->max_surge = 0;
  if (policy->max_surge == 0 && !reader.Find("max_unavailable").has_value()) {
    policy->max_unavailable = 1;
  }
  if (policy->max_surge > 0 && policy->max_unavailable > 0) {
    reader.AddProblem("max_unavailable",
                      "the old VM goes first, and with max_surge = " +
                          std::to_string(policy->max_surge) + " the new one does",
                      "leave one of the two out");
  }
  if (policy->max_surge == 0 && policy->max_unavailable == 0) {
    reader.AddProblem("max_surge", "0, and so is max_unavailable: no VM could be replaced",
                      "leave one of the two out");
  }
}

void ReadRemediation(ConfigReader& reader, PoolPolicy* policy) {
  reader.Read("on_host_maintenance", OneOf(kHostMaintenance), &policy->on_host_maintenance);
  reader.Read("expire_after", Expiry, &policy->expire_after);
  reader.Read("replacement_window", Window, &policy->replacement_window);
  if (reader.Find("replacement_window").has_value() && !reader.Find("expire_after").has_value() &&
      policy->replace_drifted != ReplaceDrifted::kRolling) {
    reader.AddWarning("replacement_window",
                      "has no effect without expire_after or replace_drifted = \"rolling\"");
  }
  ReadBudget(reader, policy);
  reader.Read("replace_unhealthy_after", PositiveDuration, &policy->replace_unhealthy_after);
  reader.Read("max_unhealthy", CountOrPercentage, &policy->max_unhealthy);
}

// Reads the keys that the host adds (hashicorp/nomad-autoscaler:plugins/shared/util.go). It may add
// more in the future, so unknown ones are not an error.
void ReadHostKeys(ConfigReader& reader, const StringMap& values, PoolPolicy* policy) {
  for (auto entry = values.lower_bound(std::string(kHostPrefix));
       entry != values.end() && entry->first.starts_with(kHostPrefix); ++entry) {
    reader.FindInMap(entry->first);
  }
  reader.Read(kGrpcTimeout, PositiveDuration, &policy->grpc_timeout);
}

}  // namespace

absl::StatusOr<PoolPolicy> ParsePoolPolicy(const StringMap& values, const TemplateCheck& check) {
  ConfigReader reader(Section::kPolicy, values);
  PoolPolicy policy;
  reader.Read("node_group_name", PoolLabel, &policy.pool);
  reader.Read("namespace", Namespace, &policy.ns);
  reader.Read("dry-run", Boolean, &policy.dry_run);
  if (const std::optional<GivenValue> given = reader.Find("dry-run");
      policy.dry_run && given->value != "true") {
    // hashicorp/nomad-autoscaler:policy/handler.go compares with "true".
    reader.AddWarning("dry-run", "the agent accepts no other value than \"true\"");
  }
  ReadNodes(reader, &policy);
  ReadMachine(reader, &policy);
  ReadGrowth(reader, &policy);
  ReadShrinking(reader, &policy);
  ReadRemediation(reader, &policy);
  ReadHostKeys(reader, values, &policy);
  if (check) CheckTemplates(reader, check, policy);
  NH_RETURN_IF_ERROR(reader.Finish());
  policy.warnings = reader.TakeWarnings();
  return policy;
}

}  // namespace nomad_harvester::config
