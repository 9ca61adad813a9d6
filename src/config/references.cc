// SPDX-License-Identifier: Apache-2.0
// Parses values that name Harvester objects, and maps of labels, annotations and tags.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/policy/machine_fields.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "values.h"

namespace nomad_harvester::config {
namespace {

constexpr std::string_view kManagement = "management";
constexpr std::string_view kTagPrefix = "tag.harvesterhci.io/";
constexpr std::string_view kNetworkPrefix = "network.harvesterhci.io/";
constexpr std::string_view kManagedBy = "app.kubernetes.io/managed-by";
// Limit per kind and VM: more than any machine has slots for.
constexpr std::int64_t kMaxDevices = 64;
// An annotation's name has at most 63 characters.
constexpr std::size_t kMaxHold = 40;

constexpr std::array<std::string_view, 4> kReservedPrefixes = {
    "nomad-harvester-autoscaler/", "harvesterhci.io/", kNetworkPrefix, "kubevirt.io/"};
// Longer than any name that Kubernetes or Harvester accepts.
constexpr std::size_t kMaxName = 253;

bool IsReserved(std::string_view key) {
  return key == kManagedBy ||
         std::any_of(kReservedPrefixes.begin(), kReservedPrefixes.end(),
                     [key](std::string_view prefix) { return key.starts_with(prefix); });
}

NamespacedName SplitName(const std::string& text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string::npos) return {};
  return {.ns = text.substr(0, slash), .name = text.substr(slash + 1)};
}

// True for printable characters except '/', because names in Harvester's UI are free text.
bool IsDisplayName(std::string_view text) {
  return !text.empty() && text.size() <= kMaxName && text == base::ToValidUtf8(text) &&
         std::none_of(text.begin(), text.end(), [](char c) {
           return c == '/' || c == 0x7f || static_cast<unsigned char>(c) < 0x20;
         });
}

enum class Duplicates { kRefused, kAllowed };

template <typename T>
ValueOr<std::vector<T>> ListOf(const std::string& text, ValueOr<T> (*parse)(const std::string&),
                               Duplicates duplicates = Duplicates::kRefused) {
  const absl::StatusOr<std::vector<std::string>> elements = base::ParseList(text);
  if (!elements.ok()) {
    return Fault{base::Message(elements.status()), "write a list such as \"a,b\""};
  }
  std::vector<T> values;
  std::set<std::string_view> seen;
  for (const std::string& element : *elements) {
    if (!seen.insert(element).second && duplicates == Duplicates::kRefused) {
      return Fault{Quote(element) + " is given twice", "remove one of them", false};
    }
    ValueOr<T> value = parse(element);
    if (Fault* const fault = std::get_if<Fault>(&value)) return std::move(*fault);
    values.push_back(std::get<T>(std::move(value)));
  }
  return values;
}

ValueOr<NetworkRef> Network(const std::string& text) {
  if (text == kManagement) return NetworkRef{.management = true, .attachment = {}};
  ValueOr<NamespacedName> name = ResourceRef(text);
  if (std::holds_alternative<Fault>(name)) {
    return Fault{Quote(text) + " is neither NAMESPACE/NETWORK nor \"management\"",
                 "write the namespace too, such as \"default/vlan1\"", false};
  }
  return NetworkRef{.management = false, .attachment = std::get<NamespacedName>(name)};
}

constexpr char kDiskHint[] = "write SIZE[@STORAGECLASS][:rwo], such as \"100Gi@fast\"";

ValueOr<policy::DataDisk> DataDisk(const std::string& text) {
  constexpr std::string_view kReadWriteOnce = ":rwo";
  policy::DataDisk disk;
  std::string_view rest = text;
  disk.read_write_once = rest.ends_with(kReadWriteOnce);
  if (disk.read_write_once) rest.remove_suffix(kReadWriteOnce.size());
  if (rest.find(':') != std::string_view::npos) {
    return Fault{"in " + Quote(text) + ", only \":rwo\" may follow a colon", kDiskHint, false};
  }
  const std::size_t at = rest.find('@');
  const absl::StatusOr<std::int64_t> bytes = base::ParseQuantity(rest.substr(0, at));
  if (!bytes.ok() || *bytes < kMinDisk) {
    const std::string meant = WithUnit(text);
    return Fault{
        "the size of " + Quote(text) +
            " must be a quantity of at least 1Mi; without a suffix it is a number of bytes",
        meant.empty() ? kDiskHint : "write \"" + meant + "\"", false};
  }
  disk.bytes = *bytes;
  if (at == std::string_view::npos) return disk;
  disk.storage_class = std::string(rest.substr(at + 1));
  if (base::IsDnsSubdomain(disk.storage_class)) return disk;
  return Fault{Quote(disk.storage_class) + " is not the name of a storage class", kDiskHint, false};
}

// Extended resources have a domain (kubernetes/kubernetes:pkg/apis/core/v1/helper/helpers.go,
// IsExtendedResourceName).
ValueOr<policy::DeviceRequest> Device(const std::string& text) {
  constexpr char kHint[] = "write RESOURCE[:COUNT], such as \"nvidia.com/GA102GL_A10:2\"";
  policy::DeviceRequest device;
  const std::size_t colon = text.find(':');
  device.resource = text.substr(0, colon);
  if (device.resource.find('/') == std::string::npos || !base::IsLabelKey(device.resource)) {
    return Fault{Quote(device.resource) + " is not the name of a device resource", kHint, false};
  }
  if (colon == std::string::npos) return device;
  const ValueOr<std::int64_t> count = CountUpTo(text.substr(colon + 1), kMaxDevices);
  if (const Fault* const fault = std::get_if<Fault>(&count)) {
    return Fault{"the count of " + Quote(text) + " " + fault->what, kHint, false};
  }
  device.count = std::get<std::int64_t>(count);
  return device;
}

constexpr char kLabelHint[] =
    "use letters, digits, '-', '_' and '.', 63 at most, with a letter or digit at both ends";

struct MapRules {
  bool values_are_labels = true;
  bool ours = true;  // of an object that we write, where some keys are reserved
  std::string_view key_prefix = {};
};

ValueOr<StringMap> CheckedMap(const std::string& text, const MapRules& rules) {
  absl::StatusOr<StringMap> map = base::ParseMap(text);
  if (!map.ok()) return Fault{base::Message(map.status()), "write a map such as \"a=1,b=2\""};
  for (const auto& [key, value] : *map) {
    const std::string full_key = std::string(rules.key_prefix) + key;
    if (rules.ours && IsReserved(full_key)) {
      return Fault{"the key " + Quote(key) + " is reserved", "choose another one", false};
    }
    if (!base::IsLabelKey(full_key)) {
      return Fault{Quote(key) + " is not a valid key", kLabelHint, false};
    }
    if (rules.values_are_labels && !base::IsLabelValue(value)) {
      return Fault{Quote(value) + ", the value of " + Quote(key) + ", is not a valid label value",
                   kLabelHint, false};
    }
  }
  return *std::move(map);
}

}  // namespace

ValueOr<NamespacedName> ResourceRef(const std::string& text) {
  NamespacedName name = SplitName(text);
  if (base::IsDnsLabel(name.ns) && base::IsDnsSubdomain(name.name)) return name;
  return Fault{Quote(text) + " is not of the form NAMESPACE/NAME",
               "write it such as \"default/name\"", false};
}

ValueOr<TemplateRef> TemplateReference(const std::string& text) {
  constexpr char kHint[] =
      "write NAMESPACE/NAME or NAMESPACE/NAME:VERSION, such as "
      "\"default/worker:3\"";
  const std::size_t colon = text.find(':');
  const ValueOr<NamespacedName> name = ResourceRef(text.substr(0, colon));
  if (std::holds_alternative<Fault>(name)) return Fault{"must name a template", kHint};
  TemplateRef ref{.name = std::get<NamespacedName>(name), .version = {}};
  if (colon == std::string::npos) return ref;
  const ValueOr<std::int64_t> version = Count(text.substr(colon + 1));
  if (const Fault* const fault = std::get_if<Fault>(&version)) {
    return Fault{"the version of the template " + fault->what, kHint};
  }
  ref.version = std::get<std::int64_t>(version);
  return ref;
}

ValueOr<NamespacedName> ImageRef(const std::string& text) {
  NamespacedName name = SplitName(text);
  if (base::IsDnsLabel(name.ns) && IsDisplayName(name.name)) return name;
  return Fault{"must be of the form NAMESPACE/IMAGE",
               "write it such as \"default/ubuntu-24.04\", with the image's resource name or "
               "display name"};
}

ValueOr<std::vector<NamespacedName>> ResourceRefs(const std::string& text) {
  return ListOf(text, ResourceRef);
}

ValueOr<std::vector<NetworkRef>> Networks(const std::string& text) {
  if (base::TrimAsciiSpace(text).empty()) {
    return Fault{"must name at least one network",
                 "write \"management\" or a list of NAMESPACE/NETWORK", false};
  }
  return ListOf(text, Network);
}

ValueOr<StringMap> Labels(const std::string& text) { return CheckedMap(text, {}); }

ValueOr<StringMap> Annotations(const std::string& text) {
  return CheckedMap(text, {.values_are_labels = false});
}

ValueOr<StringMap> Tags(const std::string& text) {
  return CheckedMap(text, {.values_are_labels = true, .key_prefix = kTagPrefix});
}

// Harvester's webhook replaces every term with the networks' prefix by those of the VM's networks
// (harvester/harvester:pkg/webhook/resources/virtualmachine/mutator.go, patchAffinity).
ValueOr<StringMap> HostLabels(const std::string& text) {
  ValueOr<StringMap> labels = CheckedMap(text, {.ours = false});
  const StringMap* const map = std::get_if<StringMap>(&labels);
  if (map == nullptr) return labels;
  for (const auto& [key, value] : *map) {
    if (!key.starts_with(kNetworkPrefix)) continue;
    return Fault{
        "the key " + Quote(key) + " is Harvester's own, which places VMs by their networks",
        "remove it", false};
  }
  return labels;
}

ValueOr<std::vector<std::string>> Zones(const std::string& text) {
  return ListOf<std::string>(text, [](const std::string& zone) -> ValueOr<std::string> {
    if (!zone.empty() && base::IsLabelValue(zone)) return zone;
    return Fault{Quote(zone) + " is no value of a label",
                 "write values of the hosts' label topology.kubernetes.io/zone", false};
  });
}

ValueOr<std::vector<std::string>> Drivers(const std::string& text) {
  return ListOf<std::string>(text, [](const std::string& driver) -> ValueOr<std::string> {
    const bool is_name = std::all_of(driver.begin(), driver.end(), [](char c) {
      return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-';
    });
    if (!driver.empty() && is_name) return driver;
    return Fault{Quote(driver) + " is no name of a task driver",
                 "write names as nomad node status shows them, such as docker,exec", false};
  });
}

ValueOr<std::vector<std::string>> Holds(const std::string& text) {
  return ListOf<std::string>(text, [](const std::string& hold) -> ValueOr<std::string> {
    if (base::IsDnsLabel(hold, kMaxHold)) return hold;
    return Fault{Quote(hold) + " is no name of a hold",
                 "write up to 40 lower-case letters, digits and hyphens, such as tailscale", false};
  });
}

ValueOr<std::vector<std::string>> TemplatePartList(const std::string& text) {
  return ListOf<std::string>(text, [](const std::string& part) -> ValueOr<std::string> {
    const auto& parts = policy::TemplatePartNames();
    if (parts.contains(part)) return part;
    return Fault{Quote(part) + " is no part of a VM", "choose from " + absl::StrJoin(parts, ", "),
                 false};
  });
}

ValueOr<std::vector<policy::DataDisk>> DataDisks(const std::string& text) {
  return ListOf(text, DataDisk, Duplicates::kAllowed);
}

ValueOr<std::vector<policy::DeviceRequest>> DeviceRequests(const std::string& text) {
  ValueOr<std::vector<policy::DeviceRequest>> parsed = ListOf(text, Device);
  const auto* const devices = std::get_if<std::vector<policy::DeviceRequest>>(&parsed);
  if (devices == nullptr) return parsed;
  std::set<std::string_view> seen;
  for (const policy::DeviceRequest& device : *devices) {
    if (seen.insert(device.resource).second) continue;
    return Fault{Quote(device.resource) + " is given twice",
                 "write its number behind it: \"" + device.resource + ":2\"", false};
  }
  return parsed;
}

ValueOr<std::string> ObjectName(const std::string& text) {
  if (base::IsDnsSubdomain(text)) return text;
  return Fault{"must be the name of an object",
               "use a-z, 0-9, '-' and '.', with a letter or digit at both ends"};
}

// KubeVirt looks for hosts with the label cpu-model.node.kubevirt.io/<model>
// (kubevirt/kubevirt:staging/src/kubevirt.io/api/core/v1/types.go, CPUModelLabel).
ValueOr<std::string> CpuModel(const std::string& text) {
  if (!text.empty() && base::IsLabelValue(text)) return text;
  return Fault{"must be host-model, host-passthrough or the name of a CPU model",
               "write one such as \"EPYC-Rome\""};
}

}  // namespace nomad_harvester::config
