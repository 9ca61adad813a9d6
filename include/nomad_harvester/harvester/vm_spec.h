// SPDX-License-Identifier: Apache-2.0
// The specification of a VM, and the objects built from it.
#ifndef NOMAD_HARVESTER_HARVESTER_VM_SPEC_H_
#define NOMAD_HARVESTER_HARVESTER_VM_SPEC_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nomad_harvester/base/secret.h"
#include "nomad_harvester/harvester/metadata.h"
#include "nomad_harvester/policy/machine_fields.h"
#include "nomad_harvester/policy/strategies.h"

#include "absl/status/statusor.h"
#include "nlohmann/json_fwd.hpp"

namespace nomad_harvester::harvester {

// The fields of a VirtualMachineImage that a root disk needs
// (harvester/harvester:pkg/apis/harvesterhci.io/v1beta1/image.go).
struct Image {
  std::string ns;
  std::string name;  // resource name
  std::string display_name;
  std::string storage_class;  // status.storageClassName, never derived from the name
  std::int64_t virtual_size = 0;
  bool imported = false;
  std::string problem = {};  // why it cannot be used; empty if imported
};

struct Network {
  bool management = false;
  std::string ns;
  std::string name;
};

// The parts of a template that the other members of a VmSpec do not cover.
struct VmBase {
  struct Disk {
    bool hard_disk = false;
    // Templates of the device, the volume and its claim, without names; null: it has none. A volume
    // without a device keeps its name.
    std::shared_ptr<const nlohmann::json> device;
    std::shared_ptr<const nlohmann::json> volume;
    std::shared_ptr<const nlohmann::json> claim;
    // The members below describe the claim.
    bool from_image = false;
    Image image;
    std::int64_t bytes = 0;
    std::string storage_class;
    bool read_write_once = false;
  };
  // The spec of a VirtualMachine; null: there is no template. Takes precedence over the other
  // members; labels, affinity and disks are merged.
  std::shared_ptr<const nlohmann::json> spec;
  std::vector<Disk> disks;  // the root disk first; its image, size and class are the VmSpec's
};

// The specification shared by all VMs of one action.
struct VmSpec {
  std::string ns;
  std::string pool;
  Image image;
  std::int64_t cpu_cores = 1;
  std::int64_t memory_bytes = 0;
  std::int64_t disk_bytes = 0;
  std::vector<policy::DataDisk> data_disks;
  VmBase base;
  std::vector<Network> networks;
  bool has_network_data = false;  // in the Secret, beside the user data
  policy::Firmware firmware = policy::Firmware::kBios;
  std::vector<policy::DeviceRequest> host_devices;
  std::vector<policy::DeviceRequest> gpus;
  // Harvester 1.8 and newer take GPUs as host devices only.
  bool gpus_are_host_devices = true;
  policy::HostSpread host_spread = policy::HostSpread::kPreferred;
  std::map<std::string, std::string> node_selector;  // labels of the host
  std::vector<std::string> zones;                    // of the host; empty: any
  policy::RunStrategy run_strategy = policy::RunStrategy::kRerunOnFailure;
  policy::MachineValues machine;  // further keys, each of which has one place in the VM
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;
  std::map<std::string, std::string> tags;
  std::string template_hash;
  std::string template_parts;
  std::string join_timeout;  // the annotation's value
  std::vector<std::string> deletion_holds;
  NodesRecord nodes;
  std::string nomad_cluster;  // the annotation's value; empty: none
};

// The data that differ between the VMs of one action.
struct VmIdentity {
  std::string name;
  std::string firmware_uuid;
  std::string action_id;
  std::string claim_random;  // the random part of the names of its claims
  std::string zone{};        // the zone of the spec in which it must run; empty: any
  std::optional<Replaces> replaces{};
  bool halted = false;  // created Halted, to be started later
};

// A client introduction token of Nomad.
struct IntroToken {
  base::Secret jwt{};  // empty: none
  base::WallTime expires{};
};

// The cloud-init data in a VM's Secret.
struct CloudInit {
  std::string user_data{};
  std::string network_data{};  // empty: none
  // Also part of the texts above. The Secret additionally stores it under its own key, so that it
  // can be replaced.
  IntroToken intro_token{};
  // While these exist, the lines of the texts count as secrets (rule P3).
  std::vector<base::Secret> lines{};
};

// Build the objects to POST. The Secret has no owner yet; the VM refers to it by name. User data
// and network data are always passed in the Secret.
nlohmann::json BuildSecret(const VmSpec& vm_spec, const VmIdentity& identity,
                           const CloudInit& cloud_init);
nlohmann::json BuildVirtualMachine(const VmSpec& vm_spec, const VmIdentity& identity);
// Builds the merge patch that makes the VM the Secret's owner (blockOwnerDeletion false).
nlohmann::json BuildSecretOwnerPatch(const VmIdentity& identity, const std::string& vm_uid,
                                     const std::string& secret_resource_version);

// Returns the size of the root disk: `wanted`, or max(10 GiB, virtual size). INVALID_ARGUMENT if
// `wanted` is smaller than the image's virtual size.
absl::StatusOr<std::int64_t> RootDiskBytes(const Image& image, const std::int64_t* wanted);

// The variables of a template (docs/configuration.md, "Templates").
using TemplateVariables = std::map<std::string, std::string>;

// Renders Mustache without HTML escaping. INVALID_ARGUMENT with line and column for an unknown
// variable, a section, a partial or an unclosed tag; the text explains how to keep foreign {{ }} by
// changing the delimiters. The same for a value that could change the text around it, such as by a
// line break, unless it is of the operator's environment ("env.NAME").
absl::StatusOr<std::string> RenderTemplate(const std::string& source,
                                           const TemplateVariables& variables);

// True if the template uses this variable.
bool UsesVariable(const std::string& source, std::string_view name);

// True if cloud-init runs the text: it begins with a known prefix, is a MIME message or is
// compressed. Any other user data is ignored with a warning in the VM
// (canonical/cloud-init:cloudinit/handlers/__init__.py, INCLUSION_TYPES_MAP;
// canonical/cloud-init:cloudinit/user_data.py, convert_string).
bool IsRunByCloudInit(std::string_view text);

// Builds the user data of a VM: the rendered template, checked to be YAML if it begins with
// #cloud-config, with the public keys merged into ssh_authorized_keys. Keys require #cloud-config
// or no template (INVALID_ARGUMENT). An empty source gives "#cloud-config\n".
absl::StatusOr<std::string> ComposeUserData(const std::string& source,
                                            const TemplateVariables& variables,
                                            const std::vector<std::string>& public_keys);
// Builds the network data of a VM: the rendered template, which must be a non-empty YAML mapping.
absl::StatusOr<std::string> ComposeNetworkData(const std::string& source,
                                               const TemplateVariables& variables);

}  // namespace nomad_harvester::harvester

#endif  // NOMAD_HARVESTER_HARVESTER_VM_SPEC_H_
