// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/harvester/template_hash.h"

#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nomad_harvester/base/encoding.h"
#include "nomad_harvester/base/json.h"
#include "nomad_harvester/policy/machine_fields.h"

#include "nlohmann/json.hpp"

namespace nomad_harvester::harvester {
namespace {

using nlohmann::json;

// Raise it whenever the document changes although the VMs do not; otherwise a new release would
// report every VM as drifted.
constexpr char kVersion[] = "v2:";

std::string_view VersionOf(std::string_view value) {
  const std::size_t colon = value.find(':');
  return value.substr(0, colon == std::string_view::npos ? 0 : colon);
}

json DisksOf(const std::vector<policy::DataDisk>& disks) {
  json list = json::array();
  for (const policy::DataDisk& disk : disks) {
    list.push_back({{"bytes", disk.bytes}, {"class", disk.storage_class}});
    if (disk.read_write_once) list.back()["rwo"] = true;
  }
  return list;
}

json DevicesOf(const std::vector<policy::DeviceRequest>& devices) {
  json list = json::array();
  for (const policy::DeviceRequest& device : devices) {
    list.push_back({{"resource", device.resource}, {"count", device.count}});
  }
  return list;
}

// Returns the template without the parts that the policy overrides.
json RestOfTemplate(const VmBase& base) {
  json disks = json::array();
  const auto text = [](const std::shared_ptr<const json>& part) {
    return part == nullptr ? json() : *part;
  };
  for (const VmBase::Disk& disk : base.disks) {
    disks.push_back({{"device", text(disk.device)},
                     {"volume", text(disk.volume)},
                     {"claim", text(disk.claim)}});
  }
  // The root disk is hashed separately.
  for (std::size_t i = 1; i < base.disks.size(); ++i) {
    const VmBase::Disk& disk = base.disks[i];
    disks[i]["image"] = disk.image.ns + "/" + disk.image.name;
    disks[i]["bytes"] = disk.bytes;
    disks[i]["class"] = disk.storage_class;
  }
  return {{"spec", text(base.spec)}, {"disks", std::move(disks)}};
}

// Adds members newer than the version, and only if they differ from their default, so that the
// hashes of pools that do not use them stay the same.
void AddUnlessDefault(const VmSpec& vm_spec, json* document) {
  const auto add = [document](const char* name, bool given, json value) {
    if (given) (*document)[name] = std::move(value);
  };
  const VmSpec unset;
  add("template_rest", vm_spec.base.spec != nullptr, RestOfTemplate(vm_spec.base));
  add("data_disks", !vm_spec.data_disks.empty(), DisksOf(vm_spec.data_disks));
  add("firmware", vm_spec.firmware != unset.firmware, policy::NameOf(vm_spec.firmware));
  add("host_devices", !vm_spec.host_devices.empty(), DevicesOf(vm_spec.host_devices));
  add("gpus", !vm_spec.gpus.empty(), DevicesOf(vm_spec.gpus));
  add("host_spread", vm_spec.host_spread != unset.host_spread, policy::NameOf(vm_spec.host_spread));
  add("node_selector", !vm_spec.node_selector.empty(), vm_spec.node_selector);
  add("availability_zones", !vm_spec.zones.empty(),
      std::set<std::string>(vm_spec.zones.begin(), vm_spec.zones.end()));
  for (const auto& [key, value] : vm_spec.machine) {
    // Without a template, a flag that is off changes nothing.
    const bool off = value == policy::MachineValue(false) && vm_spec.base.spec == nullptr;
    std::visit([&, name = &key](const auto& given) { add(name->c_str(), !off, given); }, value);
  }
}

// The node identifiers from which the cloud-init data is rendered, and their values.
json IdentifiersIn(const TemplateSources& sources, const NodesRecord& nodes) {
  json used = json::object();
  const auto add = [&](const char* name, const std::string& value) {
    if (UsesVariable(sources.user_data, name) || UsesVariable(sources.network_data, name)) {
      used[name] = value;
    }
  };
  add("node_class", nodes.node_class.value_or(""));
  add("datacenter", nodes.datacenter.value_or(""));
  add("node_pool", nodes.node_pool.value_or(""));
  add("nomad_region", nodes.region);
  return used;
}

// Members are sorted by name, so the document's text is canonical.
json Document(const TemplateSources& sources, const VmSpec& vm_spec) {
  // Names every member, so that adding one does not compile until somebody decides whether it
  // shapes the VM. The unused ones are the same for the whole pool, follow from others, or do not
  // change the machine.
  const auto& [ns, pool, image, cpu_cores, memory_bytes, disk_bytes, data_disks, base, networks,
               has_network_data, firmware, host_devices, gpus, gpus_are_host_devices, host_spread,
               node_selector, zones, run_strategy, machine, labels, annotations, tags,
               template_hash, template_parts, join_timeout, deletion_holds, nodes, nomad_cluster] =
      vm_spec;
  json network_names = json::array();
  for (const Network& network : networks) {
    network_names.push_back(network.management ? "management" : network.ns + "/" + network.name);
  }
  json document = {{"image", image.ns + "/" + image.name},
                   // A new image under an old name has another storage class if Harvester derives
                   // it from the image's uid.
                   {"storage_class", image.storage_class},
                   {"cpu", cpu_cores},
                   {"memory", memory_bytes},
                   {"disk", disk_bytes},
                   {"networks", std::move(network_names)},
                   {"run_strategy", policy::NameOf(run_strategy)},
                   {"labels", labels},
                   {"annotations", annotations},
                   {"tags", tags},
                   // The user's texts are base64-encoded, so that texts differing only in invalid
                   // UTF-8 have different hashes.
                   {"user_data", base::Base64Encode(sources.user_data)},
                   {"network_data", base::Base64Encode(sources.network_data)},
                   {"template_version", sources.template_version},
                   {"keys", sources.public_keys}};
  AddUnlessDefault(vm_spec, &document);
  if (json used = IdentifiersIn(sources, nodes); !used.empty()) document["nodes"] = std::move(used);
  return document;
}

// Enough to distinguish two texts written by an operator.
constexpr std::size_t kPartHash = 8;
constexpr std::size_t kMaxPart = 32;

std::map<std::string, std::string> ReadParts(std::string_view text) {
  std::map<std::string, std::string> parts;
  const auto json = base::ParseJson(text, "the parts");
  if (!json.ok() || !json->is_object()) return parts;
  for (const auto& [part, hash] : json->items()) {
    // Anybody who may edit the VM can write anything here, and the part names are logged.
    const bool is_name = part.size() <= kMaxPart &&
                         part.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") == std::string::npos;
    if (is_name && hash.is_string()) parts.emplace(part, hash.get<std::string>());
  }
  return parts;
}

}  // namespace

std::string TemplateHash(const TemplateSources& sources, const VmSpec& vm_spec) {
  return kVersion + base::StableHash(base::DumpJson(Document(sources, vm_spec)));
}

std::string TemplateParts(const TemplateSources& sources, const VmSpec& vm_spec) {
  const json document = Document(sources, vm_spec);
  json parts = json::object();
  for (const auto& [member, value] : document.items())
    parts[policy::TemplatePartOf(member)][member] = value;
  for (json& part : parts) part = base::StableHash(base::DumpJson(part)).substr(0, kPartHash);
  return base::DumpJson(parts);
}

std::vector<std::string> DriftedParts(std::string_view stored, std::string_view wanted) {
  const std::map<std::string, std::string> before = ReadParts(stored);
  const std::map<std::string, std::string> now = ReadParts(wanted);
  std::vector<std::string> drifted;
  if (before.empty() || now.empty()) return drifted;
  std::map<std::string, std::string> all = before;
  all.insert(now.begin(), now.end());
  for (const auto& [part, hash] : all) {
    const auto was = before.find(part);
    const auto is = now.find(part);
    if (was == before.end() || is == now.end() || was->second != is->second) {
      drifted.push_back(part);
    }
  }
  return drifted;
}

bool IsDrift(std::string_view stored, std::string_view wanted) {
  return !stored.empty() && !wanted.empty() && VersionOf(stored) == VersionOf(wanted) &&
         stored != wanted;
}

}  // namespace nomad_harvester::harvester
