// SPDX-License-Identifier: Apache-2.0
// Checks the sources of new VMs, and whether the VMs allow Harvester to be upgraded.
#include "commands/check_sources.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/base/text.h"
#include "nomad_harvester/harvester/quota.h"
#include "nomad_harvester/kube/observed.h"
#include "nomad_harvester/runtime/workers.h"
#include "nomad_harvester/scaling/drift.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "execution/vm_objects.h"
#include "nlohmann/json.hpp"
#include "rules/room.h"

namespace nomad_harvester::scaling {
namespace {

std::string Quoted(const config::NamespacedName& name) { return name.ns + "/" + name.name; }

std::string NetworksOf(const config::PoolPolicy& policy) {
  std::vector<std::string> names;
  names.reserve(policy.networks.size());
  for (const config::NetworkRef& network : policy.networks) {
    names.push_back(network.management ? "management" : Quoted(network.attachment));
  }
  return absl::StrJoin(names, ", ");
}

std::vector<policy::DeviceRequest> DevicesOf(const config::PoolPolicy& policy) {
  std::vector<policy::DeviceRequest> devices = policy.host_devices;
  devices.insert(devices.end(), policy.gpus.begin(), policy.gpus.end());
  return devices;
}

// Replaces sources that could not be read by some that are no obstacle, so that the templates alone
// decide.
CreationSources WithoutProblems(CreationSources sources) {
  if (!sources.image.ok()) sources.image = harvester::Image();
  if (!sources.disk_images.ok()) sources.disk_images = std::vector<harvester::Image>();
  if (!sources.networks.ok()) sources.networks = std::vector<harvester::Network>();
  if (!sources.public_keys.ok()) sources.public_keys = {{"ssh-ed25519 AAAA sample"}};
  if (!sources.gpus_are_host_devices.ok()) sources.gpus_are_host_devices = true;
  sources.storage_classes = sources.priority_class = absl::OkStatus();
  return sources;
}

bool IsUnread(const absl::Status& status) {
  return kube::IsForbidden(status) || absl::IsPermissionDenied(status);
}

std::string CureOf(const std::string& key, const absl::Status& problem) {
  std::string cure = CureOfSource(key, problem);
  return cure.empty() ? kSeeHarvester : cure;
}

// Reports a source that every new VM needs. An unreadable source is also a failure, but is not
// called missing.
void SetSource(const std::string& key, const absl::Status& status, const std::string& seen,
               CheckLines* lines) {
  const std::string id = "harvester." + key;
  if (status.ok()) {
    lines->Set(id, CheckOutcome::kPass, seen);
    return;
  }
  const char* const unread = "the token may not read it, so no VM can be made: ";
  lines->Set(id, CheckOutcome::kFail, (IsUnread(status) ? unread : "") + base::Message(status),
             CureOf(key, status));
}

// A class that the token may not read is no obstacle: Harvester's own dry run accepts any name.
void SetClass(const std::string& id, const std::string& key, const absl::Status& status,
              const std::vector<std::string>& unread, const std::string& resource, bool lacks_right,
              CheckLines* lines) {
  if (!status.ok()) {
    lines->Set(id, CheckOutcome::kFail, base::Message(status), CureOf(key, status));
  } else if (!unread.empty() && !lacks_right) {
    lines->Set(id, CheckOutcome::kFail,
               "the read of " + absl::StrJoin(unread, ", ") +
                   " is refused (403), though the review of rights grants get on " + resource,
               kSeeHarvester);
  } else if (!unread.empty()) {
    lines->Set(id, CheckOutcome::kUnknown,
               "the token may not read " + absl::StrJoin(unread, ", ") +
                   ", and a dry run of a VM does not notice if it is missing",
               "grant get on " + resource +
                   ", as the optional ClusterRole of examples/rbac.yaml "
                   "does");
  } else {
    lines->Set(id, CheckOutcome::kPass, "exists");
  }
}

// The lines; those that are comments of cloud-init or Nomad, which begin with "#", are empty.
std::vector<std::string> LinesWithoutComments(const std::string& text) {
  std::vector<std::string> lines = absl::StrSplit(text, '\n');
  for (std::string& line : lines) {
    if (base::TrimAsciiSpace(line).starts_with('#')) line.clear();
  }
  return lines;
}

// Warns of host names that only examples have.
void WarnOfPlaceholders(const TemplateSource& source, const std::string& subject,
                        CheckLines* lines) {
  std::vector<std::string> found;
  int number = 0;
  for (const std::string& line : LinesWithoutComments(source.text)) {
    ++number;
    const std::string name = PlaceholderIn(line);
    if (!name.empty()) found.push_back("line " + std::to_string(number) + ": " + name);
  }
  if (found.empty()) return;
  lines->Add("harvester.templates", subject, CheckOutcome::kWarn,
             base::FirstFew(found) + ": a name that only examples have, and no server answers to",
             "write the names or addresses of your own servers there");
}

// True if the text has the word, beside other characters than those of a name.
bool HasWord(std::string_view text, std::string_view word) {
  const auto is_of_name = [&](std::size_t at) {
    return at < text.size() && (absl::ascii_isalnum(static_cast<unsigned char>(text[at])) ||
                                text[at] == '-' || text[at] == '_');
  };
  for (std::size_t at = text.find(word); at != std::string_view::npos;
       at = text.find(word, at + 1)) {
    if ((at == 0 || !is_of_name(at - 1)) && !is_of_name(at + word.size())) return true;
  }
  return false;
}

// True if a line has the value and, in any case of its letters, the word: "CLASS=web", "pool: gpu".
bool HasValueOf(const std::vector<std::string>& lines, std::string_view word,
                std::string_view value) {
  return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
    return HasWord(line, value) && absl::AsciiStrToLower(line).find(word) != std::string::npos;
  });
}

// What a node needs to be the pool's, and no VM has shown yet that the image has it. Of what the
// user data encodes, downloads or computes, this is not known.
void CheckJoining(const config::NomadSettings& nomad, const config::PoolPolicy& policy,
                  const std::string& user_data, const std::string& vm, const std::string& subject,
                  CheckLines* lines) {
  constexpr char kId[] = "harvester.templates";
  if (user_data.empty()) {
    lines->Add(kId, subject, CheckOutcome::kWarn,
               "there is none: no VM joins Nomad, unless the image does that by itself",
               "set user_data_file, as in examples/cloud-init.yaml, or install such an image");
    return;
  }
  const std::vector<std::string> effective = LinesWithoutComments(user_data);
  for (const std::string& line : effective) {
    if (policy.node_attribute != "unique.hostname" || HasWord(line, vm)) continue;
    if (!line.starts_with("hostname:") && !line.starts_with("fqdn:")) continue;
    lines->Add(kId, subject, CheckOutcome::kWarn,
               line.substr(0, line.find(':')) +
                   " in it is not the VM's name, by which node_attribute = \"unique.hostname\" "
                   "finds its node: no VM counts as joined",
               "write \"{{vm_name}}\" there, or remove the line: it is the VM's name by default");
  }
  const std::string text = absl::StrJoin(effective, "\n");
  std::vector<std::string> missing;
  const auto expect = [&](const std::string& key, std::string_view word,
                          const std::optional<std::string>& value, std::string_view by_default) {
    const bool has_it = !value.has_value() || value->empty() ||
                        HasValueOf(effective, word, *value) ||
                        (*value == by_default && !HasWord(text, key));
    if (!has_it) missing.push_back(key + " = \"{{" + key + "}}\"");
  };
  expect("node_class", "class", policy.node_class, "autoscaler-default-pool");
  expect("datacenter", "datacenter", policy.datacenter, "dc1");
  expect("node_pool", "pool", policy.node_pool, "default");
  constexpr std::string_view kMeta = "meta.";
  if (policy.node_attribute.starts_with(kMeta)) {
    const std::string key = policy.node_attribute.substr(kMeta.size());
    if (!HasWord(text, key)) missing.push_back("meta { " + key + " }");
  }
  // A Nomad that wants a certificate of the plugin wants one of its clients, too.
  if (nomad.address.starts_with("https://") && !nomad.client_cert.empty() &&
      !HasWord(text, "tls")) {
    missing.emplace_back("tls { rpc = true } (examples/cloud-init-tls.yaml)");
  }
  if (missing.empty()) return;
  const bool shows_all = user_data.starts_with("#cloud-config") &&
                         text.find("encoding:") == std::string::npos &&
                         text.find("://") == std::string::npos;
  lines->Add(kId, subject, shows_all ? CheckOutcome::kWarn : CheckOutcome::kUnknown,
             "no line of it sets " + absl::StrJoin(missing, ", ") +
                 " for Nomad's client: unless the image does, no node is the pool's",
             "write it into the client's configuration there, as in examples/cloud-init.yaml");
}

// True if a VM has joined that was made of this user data: then that is as it must be.
bool HasProvedUserData(const std::vector<const harvester::VirtualMachine*>& vms,
                       const absl::StatusOr<CreationPlan>& plan) {
  CurrentTemplate current;
  if (plan.ok()) current = {plan->vm_spec.template_hash, plan->vm_spec.template_parts};
  return std::any_of(vms.begin(), vms.end(), [&](const harvester::VirtualMachine* vm) {
    const auto parts = DriftOf(*vm, current, {});
    const auto differs = [&](const char* part) {
      return parts.has_value() && std::find(parts->begin(), parts->end(), part) != parts->end();
    };
    return harvester::HasJoined(*vm) && !differs("user_data") && !differs("nodes");
  });
}

absl::Status DryRunSecret(const runtime::Context& context, const PoolDependencies& deps,
                          const config::PoolPolicy& policy, const CreationPlan& plan) {
  const auto made = ComposeVm(plan, IdentityFor(policy.name_prefix + "-sample", "check"));
  NH_RETURN_IF_ERROR(made);
  return deps.clients.kube
      ->Create(context, kube::kSecrets, policy.ns, made->secret, /*dry_run=*/true)
      .status();
}

// Ignores the root disk's size, which is checked with the image.
void CheckTemplates(const PoolDependencies& deps, config::PoolPolicy policy,
                    const CreationSources& sources, bool has_joined, CheckLines* lines) {
  constexpr char kId[] = "harvester.templates";
  policy.disk_bytes.reset();
  const auto plan = PlanCreation(deps, policy, WithoutProblems(sources), 0, "");
  if (!plan.ok()) {
    lines->Set(kId, CheckOutcome::kFail, base::Message(plan.status()),
               "correct the key or the file that is named; files are read where the agent runs");
    return;
  }
  const harvester::VmIdentity sample = IdentityFor(policy.name_prefix + "-sample", "check");
  const auto text =
      harvester::RenderTemplate(plan->user_data.text, WithIdentity(plan->variables, sample));
  const bool runs = text.ok() && (text->empty() || harvester::IsRunByCloudInit(*text));
  if (runs) {
    lines->Set(kId, CheckOutcome::kPass, "they render");
  } else {
    lines->Set(kId, CheckOutcome::kFail,
               plan->user_data.key +
                   ": cloud-init does not run it: it must begin with #cloud-config, #! or another "
                   "header of cloud-init, without anything before it",
               "correct the key or the file that is named; files are read where the agent runs");
  }
  const auto subject = [](const std::string& key, const std::optional<std::string>& file) {
    return key + (file.has_value() ? " " + *file : "");
  };
  if (runs && !has_joined) {
    CheckJoining(deps.clients.config->nomad, policy, *text, sample.name,
                 subject(plan->user_data.key, policy.user_data_file), lines);
  }
  WarnOfPlaceholders(plan->user_data, subject(plan->user_data.key, policy.user_data_file), lines);
  WarnOfPlaceholders(plan->network_data, subject(plan->network_data.key, policy.network_data_file),
                     lines);
}

void CheckImage(const config::PoolPolicy& policy, const absl::StatusOr<harvester::Image>& image,
                CheckLines* lines) {
  constexpr char kId[] = "harvester.image";
  if (image.ok() && policy.disk_bytes.has_value()) {
    const absl::Status fits = harvester::RootDiskBytes(*image, &*policy.disk_bytes).status();
    if (!fits.ok()) {
      lines->Set(kId, CheckOutcome::kFail, base::Message(fits),
                 "give disk_size at least that size");
      return;
    }
  }
  SetSource("image", image.status(),
            image.ok() && !image->name.empty()
                ? "imported: " + image->ns + "/" + image->name + ", \"" + image->display_name + "\""
                : "as the template says",
            lines);
}

// Returns true if no host offers what the policy asks for.
bool CheckDevices(const config::PoolPolicy& policy, const SourceReads& reads, CheckLines* lines) {
  constexpr char kId[] = "harvester.devices";
  if (!reads.sources.gpus_are_host_devices.ok()) {
    lines->Set(kId, CheckOutcome::kFail,
               base::Message(reads.sources.gpus_are_host_devices.status()));
    return false;
  }
  if (!reads.hosts.ok()) {
    lines->Set(kId, CheckOutcome::kUnknown,
               "which devices the hosts offer is not known (" +
                   base::Message(reads.hosts.status()) +
                   "), and a dry run of a VM does not notice a wrong name",
               "grant list on nodes, as the optional ClusterRole of examples/rbac.yaml does");
    return false;
  }
  std::vector<std::string> missing;
  for (const policy::DeviceRequest& device : DevicesOf(policy)) {
    const bool offered =
        std::any_of(reads.hosts->begin(), reads.hosts->end(), [&](const harvester::Host& host) {
          const auto found = host.allocatable.find(device.resource);
          if (found == host.allocatable.end()) return false;
          const auto count = base::ParseInt(found->second);
          return count.ok() && *count >= device.count;
        });
    if (!offered) missing.push_back(std::to_string(device.count) + " of " + device.resource);
  }
  if (missing.empty()) {
    lines->Set(kId, CheckOutcome::kPass, "a host offers them");
  } else {
    lines->Set(kId, CheckOutcome::kFail, "no host offers " + absl::StrJoin(missing, ", "),
               "enable the device in Harvester (Advanced, PCI Devices or vGPU Devices), and name "
               "the resource as `kubectl get nodes -o yaml` shows it under allocatable");
  }
  return !missing.empty();
}

std::size_t HostsInZone(const std::vector<harvester::Host>& hosts, const std::string& zone) {
  return static_cast<std::size_t>(std::count_if(
      hosts.begin(), hosts.end(), [&](const harvester::Host& host) { return host.zone == zone; }));
}

std::size_t HostsWith(const std::vector<harvester::Host>& hosts, const config::StringMap& labels) {
  return static_cast<std::size_t>(
      std::count_if(hosts.begin(), hosts.end(), [&](const harvester::Host& host) {
        return std::all_of(labels.begin(), labels.end(), [&](const auto& label) {
          const auto found = host.labels.find(label.first);
          return found != host.labels.end() && found->second == label.second;
        });
      }));
}

// Finds settings that keep VMs from leaving their host
// (harvester/harvester:pkg/util/virtualmachineinstance/virtualmachineinstance.go). The VMs' node
// selector is required affinity, which lets them leave.
void CheckUpgrade(const config::PoolPolicy& policy, const SourceReads& reads,
                  const absl::StatusOr<CreationPlan>& plan, CheckLines* lines) {
  std::vector<std::string> reasons;
  if (!DevicesOf(policy).empty()) reasons.emplace_back("they have devices of their host");
  const auto is_rwo = [](const auto& disk) { return disk.read_write_once; };
  if (std::any_of(policy.data_disks.begin(), policy.data_disks.end(), is_rwo)) {
    reasons.emplace_back("data_disks has volumes that one host can write (:rwo, as LVM's)");
  }
  if (plan.ok()) {
    const harvester::VmBase& base = plan->vm_spec.base;
    if (std::any_of(base.disks.begin(), base.disks.end(), is_rwo)) {
      reasons.emplace_back("vm_template has volumes that one host can write (ReadWriteOnce)");
    }
    const bool has_devices = !plan->vm_spec.host_devices.empty() || !plan->vm_spec.gpus.empty();
    if (has_devices && DevicesOf(policy).empty()) {
      reasons.emplace_back("vm_template gives them devices of their host");
    }
  }
  if (policy.host_spread == policy::HostSpread::kRequired) {
    reasons.emplace_back(
        "host_spread = \"required\": with as many VMs as hosts, none has where to go");
  }
  if (reads.hosts.ok()) {
    for (const std::string& zone : policy.zones) {
      if (HostsInZone(*reads.hosts, zone) > 1) continue;
      reasons.push_back("zone " + zone + " has no second host");
    }
    if (!policy.node_selector.empty() && HostsWith(*reads.hosts, policy.node_selector) <= 1) {
      reasons.emplace_back("node_selector fits no second host");
    }
  }
  if (reasons.empty() && !reads.hosts.ok()) {
    lines->Set("harvester.upgrade", CheckOutcome::kUnknown,
               "the policy keeps them on no host; whether another host takes them is not known: " +
                   (IsUnread(reads.hosts.status()) ? "the token may not list nodes"
                                                   : base::Message(reads.hosts.status())),
               "grant what the optional ClusterRole of examples/rbac.yaml has");
    return;
  }
  if (reasons.empty()) {
    lines->Set("harvester.upgrade", CheckOutcome::kPass, "nothing keeps them on their host");
    return;
  }
  lines->Set(
      "harvester.upgrade", CheckOutcome::kWarn,
      "they cannot migrate: " + absl::StrJoin(reasons, "; ") +
          ": while they run, Harvester refuses an upgrade, or stops them for it if restoreVM of "
          "its setting upgrade-config is true; volumes that one host can write may hold it up",
      "before an upgrade set the pool's count to 0; or set restoreVM; or, from Harvester 1.7 "
      "on, let the upgrade pause at each host (nodeUpgradeOption of that setting) and remove "
      "that host's VMs; or change what is named here");
}

void CheckQuota(const CreationSources& sources, const absl::StatusOr<CreationPlan>& plan,
                const std::optional<harvester::VmNeed>& need, const std::vector<Right>& missing,
                bool has_vms, CheckLines* lines) {
  constexpr char kId[] = "harvester.quota";
  if (!sources.quotas.ok()) {
    const absl::Status& problem = sources.quotas.status();
    if (IsOfMissingRight(problem, missing, "list", "resourcequotas")) {
      lines->Set(kId, CheckOutcome::kUnknown, "the token may not read quotas");
    } else {
      lines->Set(kId, CheckOutcome::kFail, TextOfRead(problem), kSeeHarvester);
    }
    return;
  }
  if (!plan.ok()) return;
  const auto room = harvester::FindQuotaRoom(*sources.quotas, plan->vm_spec, need);
  if (!room.has_value()) {
    lines->Set(kId, CheckOutcome::kPass, "no quota limits the VMs");
  } else {
    const CheckOutcome full = has_vms ? CheckOutcome::kWarn : CheckOutcome::kFail;
    lines->Set(kId, room->vms == 0 ? full : CheckOutcome::kPass,
               "room for " + std::to_string(room->vms) + " more VMs: " + room->limit,
               room->vms == 0 ? kCureOfNoQuota : "");
  }
}

// Without the optional right nothing is forecast: the scheduler decides in any case.
void CheckRoom(const config::PoolPolicy& policy,
               const std::vector<const harvester::VirtualMachine*>& vms,
               const absl::StatusOr<HostRooms>& rooms, const std::optional<harvester::VmNeed>& need,
               CheckLines* lines) {
  constexpr char kId[] = "harvester.room";
  if (!rooms.ok() && IsUnread(rooms.status())) {
    lines->Set(kId, CheckOutcome::kUnknown,
               "the token may not list the hosts and the pods of the cluster, so that growth does "
               "not know how many VMs fit",
               "grant list on nodes and pods, as the optional ClusterRole of examples/rbac.yaml "
               "does");
  } else if (!rooms.ok()) {
    lines->Set(kId, CheckOutcome::kUnknown, base::Message(rooms.status()), kSeeHarvester);
  } else if (!need.has_value()) {
    lines->Set(kId, CheckOutcome::kUnknown,
               "the reply to the dry run does not say what a VM asks of its host");
  } else if (const harvester::Room room =
                 FindRoom(*rooms, *need, ZonesOfWaiting(*rooms, {policy.ns, policy.pool}, vms));
             room.forecast.never) {
    lines->Set(kId, CheckOutcome::kFail, NeverText(room.forecast), kCureOfNever);
  } else {
    lines->Set(kId, room.vms == 0 ? CheckOutcome::kWarn : CheckOutcome::kPass,
               "there is room for " + Describe(room), room.vms == 0 ? kCureOfNoRoom : "");
  }
}

}  // namespace

void ExpectSources(const config::PoolPolicy& policy, CheckLines* lines) {
  if (policy.vm_template.has_value()) {
    lines->Expect("harvester.vm_template", "VM template " + Quoted(policy.vm_template->name));
  }
  lines->Expect("harvester.image", policy.image.name.empty() ? "image of the VM template"
                                                             : "image " + Quoted(policy.image));
  if (policy.vm_template.has_value() || !policy.data_disks.empty()) {
    lines->Expect("harvester.storage_classes", "storage classes");
  }
  if (const std::string name = policy::TextOf(policy.machine, "priority_class"); !name.empty()) {
    lines->Expect("harvester.priority_class", "priority class " + name);
  }
  lines->Expect("harvester.networks", policy.networks.empty() ? "networks of the VM template"
                                                              : "networks " + NetworksOf(policy));
  if (!policy.ssh_keys.empty()) {
    std::vector<std::string> keys;
    keys.reserve(policy.ssh_keys.size());
    for (const config::NamespacedName& key : policy.ssh_keys) keys.push_back(Quoted(key));
    lines->Expect("harvester.ssh_keys", "key pairs " + absl::StrJoin(keys, ", "));
  }
  lines->Expect("harvester.templates", "cloud-init templates");
  if (!DevicesOf(policy).empty()) lines->Expect("harvester.devices", "devices of hosts");
  lines->Expect(kDryRunOfVm, "dry run of a VM");
  lines->Expect("harvester.quota", "quota");
  lines->Expect("harvester.room", "room on the hosts");
  lines->Expect("harvester.upgrade", "VMs and Harvester's upgrade");
}

SourceReads ReadForCheck(const runtime::Context& context, const PoolDependencies& deps,
                         const config::PoolPolicy& policy) {
  SourceReads reads;
  runtime::CallAtOnce(
      context, deps.executor,
      {[&] { reads.sources = ReadSources(context, deps, policy); },
       [&] { reads.hosts = harvester::ListHosts(context, *deps.clients.kube); },
       [&] { reads.rooms = deps.hosts.ListRooms(context.WithTimeout(kHostsLimit)); }});
  return reads;
}

absl::Status CheckSources(const runtime::Context& context, const PoolDependencies& deps,
                          const config::PoolPolicy& policy, const SourceReads& reads,
                          const std::vector<Right>& missing,
                          const std::vector<const harvester::VirtualMachine*>& vms,
                          CheckLines* lines) {
  const CreationSources& sources = reads.sources;
  if (policy.vm_template.has_value()) {
    absl::Status problem = sources.vm_template.status();
    if (problem.ok()) problem = sources.disk_images.status();
    SetSource("vm_template", problem, "exists, in a version that VMs can be made of", lines);
  }
  CheckImage(policy, sources.image, lines);
  if (policy.vm_template.has_value() || !policy.data_disks.empty()) {
    SetClass("harvester.storage_classes", "storage_class", sources.storage_classes,
             sources.unread_storage, "storageclasses.storage.k8s.io",
             Lacks(missing, "get", "storageclasses"), lines);
  }
  if (policy.machine.contains("priority_class")) {
    SetClass("harvester.priority_class", "priority_class", sources.priority_class,
             sources.unread_priority, "priorityclasses.scheduling.k8s.io",
             Lacks(missing, "get", "priorityclasses"), lines);
  }
  SetSource("networks", sources.networks.status(), "exist", lines);
  if (!policy.ssh_keys.empty()) {
    SetSource("ssh_keys", sources.public_keys.status(), "exist", lines);
  }
  const bool lacks_devices = !DevicesOf(policy).empty() && CheckDevices(policy, reads, lines);
  const auto plan = PlanCreation(deps, policy, sources, 0, "");
  if (sources.vm_template.ok()) {
    CheckTemplates(deps, policy, sources, HasProvedUserData(vms, plan), lines);
  }
  absl::Status admitted = absl::UnknownError("there was no dry run");
  std::optional<harvester::VmNeed> need;
  if (plan.ok()) {
    auto tried = DryRunCreation(context, deps, policy, *plan);
    admitted = tried.status();
    if (admitted.ok()) {
      need = *std::move(tried);
      lines->Set(kDryRunOfVm, CheckOutcome::kPass,
                 "Harvester would accept one; nothing was stored");
      const absl::Status secret = DryRunSecret(context, deps, policy, *plan);
      if (!secret.ok() && !IsOfMissingRight(secret, missing, "create", "secrets")) {
        lines->Add(kDryRunOfVm, "dry run of a VM's Secret", CheckOutcome::kFail,
                   base::Message(secret),
                   "change what refuses it: the user data of each VM is in such a Secret");
      }
      if (lacks_devices) {
        lines->Set("harvester.room", CheckOutcome::kSkipped, "no host offers the devices");
      } else {
        CheckRoom(policy, vms, reads.rooms, need, lines);
      }
    } else if (IsOfMissingRight(admitted, missing, "create", "virtualmachines")) {
      lines->Set(kDryRunOfVm, CheckOutcome::kSkipped, "the token may not create VMs");
    } else if (!kube::IsNotFound(admitted)) {
      lines->Set(kDryRunOfVm, CheckOutcome::kFail, base::Message(admitted),
                 absl::IsResourceExhausted(admitted) ? kCureOfNoQuota
                 : kube::IsOfEndingNamespace(admitted)
                     ? "wait until the namespace is gone and create it again"
                     : "change what Harvester names: the keys of the policy make the VM");
    }
  } else if (!lines->HasFailure()) {
    lines->Set(kDryRunOfVm, CheckOutcome::kFail, base::Message(plan.status()),
               "correct the key that is named");
  }
  CheckQuota(sources, plan, need, missing, !vms.empty(), lines);
  CheckUpgrade(policy, reads, plan, lines);
  return admitted;
}

}  // namespace nomad_harvester::scaling
