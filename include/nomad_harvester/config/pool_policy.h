// SPDX-License-Identifier: Apache-2.0
// Parses the policy block, which Status and Scale receive with each call.
#ifndef NOMAD_HARVESTER_CONFIG_POOL_POLICY_H_
#define NOMAD_HARVESTER_CONFIG_POOL_POLICY_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nomad_harvester/base/time.h"
#include "nomad_harvester/config/cron_window.h"
#include "nomad_harvester/config/plugin_config.h"
#include "nomad_harvester/policy/machine_fields.h"
#include "nomad_harvester/policy/strategies.h"

#include "absl/status/statusor.h"

namespace nomad_harvester::config {

enum class OnJoinTimeout { kDelete, kKeep };
enum class HostVolumes { kProtect, kIgnore };
// Whether a scale-in takes only VMs whose work has another place (rule C19). kReport: it says what
// would wait.
enum class ScaleInFit { kReport, kRequire };
// The treatment of VMs that were made from another template than the policy's current one.
enum class ReplaceDrifted { kOff, kOnScaleIn, kRolling };
// The treatment of VMs on a cordoned Harvester host. kReport: only the commands show them.
enum class HostMaintenance { kReport, kEvacuate };
// Whether new VMs get a client introduction token; kAuto: if their Nomad supports such tokens.
enum class IntroToken { kOff, kAuto, kRequired };

// "NS/NAME".
struct NamespacedName {
  std::string ns;
  std::string name;
  friend bool operator==(const NamespacedName&, const NamespacedName&) = default;
};
// "NS/NAME" or "NS/NAME:VERSION".
struct TemplateRef {
  NamespacedName name;
  std::optional<std::int64_t> version;  // nullopt: the default one
  friend bool operator==(const TemplateRef&, const TemplateRef&) = default;
};
struct NetworkRef {
  bool management = false;  // the pod network, masquerade
  NamespacedName attachment;
};

// A number of VMs, or a percentage of the pool.
struct Share {
  std::int64_t value = 0;
  bool is_percentage = false;
  // Returns the number of VMs in a pool with `size` VMs, rounded up.
  std::int64_t Of(std::int64_t size) const {
    return is_percentage ? (value * size + 99) / 100 : value;
  }
  friend bool operator==(const Share&, const Share&) = default;
};

// The default of hold_timeout.
inline constexpr base::Duration kHoldTimeout = std::chrono::minutes(15);

struct PoolPolicy {
  std::string pool;  // node_group_name
  std::string ns = "default";
  bool dry_run = false;  // the policy says dry-run

  // Identify the pool's nodes; present even if empty, as in the SDK.
  std::optional<std::string> node_class;
  std::optional<std::string> datacenter;
  std::optional<std::string> node_pool;

  base::Duration drain_deadline = std::chrono::minutes(15);  // 0: none; negative: immediately
  bool drain_ignore_system_jobs = false;
  bool node_purge = false;
  policy::SelectorStrategy selector = policy::SelectorStrategy::kLeastBusy;
  bool filter_ignore_init = false;
  bool filter_ignore_drain = false;
  std::optional<bool> filter_ignore_ineligible;  // absent: false for Status, true for scale-in

  // If there is a template, an absent key leaves the choice to it: the member is then empty or 0.
  std::optional<TemplateRef> vm_template;
  NamespacedName image;
  std::int64_t cpu_cores = 0;
  std::int64_t memory_bytes = 0;
  std::optional<std::int64_t> disk_bytes;
  std::vector<policy::DataDisk> data_disks;
  std::vector<NetworkRef> networks;
  std::optional<std::string> user_data;
  std::optional<std::string> user_data_file;
  std::optional<std::string> network_data;
  std::optional<std::string> network_data_file;
  IntroToken intro_token = IntroToken::kOff;  // nomad_intro_token
  std::vector<NamespacedName> ssh_keys;
  std::string name_prefix;
  StringMap labels;
  StringMap annotations;
  StringMap tags;
  std::optional<policy::Firmware> firmware;  // nullopt: BIOS
  std::vector<policy::DeviceRequest> host_devices;
  std::vector<policy::DeviceRequest> gpus;
  policy::HostSpread host_spread = policy::HostSpread::kPreferred;
  StringMap node_selector;
  std::vector<std::string> zones;                   // availability_zones; empty: any
  bool evenly_split_zones = true;                   // among `zones`
  std::optional<policy::RunStrategy> run_strategy;  // nullopt: RerunOnFailure
  policy::MachineValues machine;                    // further keys that describe a VM
  std::string node_attribute = "unique.hostname";
  std::vector<std::string> ready_drivers;  // task drivers without which a node is not ready
  base::Duration join_timeout = std::chrono::minutes(15);
  OnJoinTimeout on_join_timeout = OnJoinTimeout::kDelete;
  HostVolumes host_volumes = HostVolumes::kProtect;
  bool publish_host = false;
  ReplaceDrifted replace_drifted = ReplaceDrifted::kOnScaleIn;
  std::vector<std::string> drift_ignore;  // parts of the template that do not count as drift
  base::Duration drain_grace = std::chrono::minutes(5);
  bool force_after_deadline = true;
  std::vector<std::string> deletion_holds;
  base::Duration hold_timeout = kHoldTimeout;
  std::optional<std::int64_t> max_scale_out;
  std::optional<std::int64_t> max_scale_in;
  ScaleInFit scale_in_fit = ScaleInFit::kReport;
  HostMaintenance on_host_maintenance = HostMaintenance::kReport;
  std::optional<base::Duration> expire_after;    // nullopt: off
  std::optional<CronWindow> replacement_window;  // nullopt: always
  // The number of VMs replaced at the same time. One of the two is 0: with max_unavailable the old
  // VM is removed first.
  std::int64_t max_surge = 1;
  std::int64_t max_unavailable = 0;
  std::optional<base::Duration> replace_unhealthy_after;  // nullopt: off
  Share max_unhealthy{.value = 20, .is_percentage = true};

  // From _nomad_autoscaler_grpc_timeout, if the agent sent that key.
  std::optional<base::Duration> grpc_timeout;
  // Each is logged once at WARN (inline user_data is visible in the agent's log, …).
  std::vector<std::string> warnings;
};

// Checks an inline template of a policy; the error says why it cannot work. A parameter, because
// rendering belongs to another module. `policy` has everything that a template can refer to.
using TemplateCheck = std::function<absl::Status(const PoolPolicy& policy, std::string_view key,
                                                 const std::string& source)>;

// INVALID_ARGUMENT lists all problems, as for ParsePluginConfig, including those found by `check`,
// if given. Accepts keys that begin with "_nomad_autoscaler_". Does not read the files of
// user_data_file and network_data_file.
absl::StatusOr<PoolPolicy> ParsePoolPolicy(const StringMap& values,
                                           const TemplateCheck& check = nullptr);

}  // namespace nomad_harvester::config

#endif  // NOMAD_HARVESTER_CONFIG_POOL_POLICY_H_
