// SPDX-License-Identifier: Apache-2.0
// Values that name Harvester objects, and maps of labels, annotations and tags.
#include <algorithm>
#include <array>
#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"

#include "values.h"

namespace nomad_harvester::config {
namespace {

constexpr std::string_view kManagement = "management";
constexpr std::string_view kTagPrefix = "tag.harvesterhci.io/";
constexpr std::string_view kManagedBy = "app.kubernetes.io/managed-by";
constexpr std::array<std::string_view, 3> kReservedPrefixes = {"nomad-harvester-autoscaler/",
                                                               "harvesterhci.io/", "kubevirt.io/"};
// Longer than any name that Kubernetes or Harvester accepts.
constexpr std::size_t kLongestName = 253;

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

// Any printable characters except '/': names in Harvester's UI are free text.
bool IsDisplayName(std::string_view text) {
  return !text.empty() && text.size() <= kLongestName && text == base::ToValidUtf8(text) &&
         std::none_of(text.begin(), text.end(), [](char c) {
           return c == '/' || c == 0x7f || static_cast<unsigned char>(c) < 0x20;
         });
}

// Parses each element of a list without duplicates.
template <typename T>
ValueOr<std::vector<T>> ListOf(const std::string& text, ValueOr<T> (*parse)(const std::string&)) {
  const absl::StatusOr<std::vector<std::string>> elements = base::ParseList(text);
  if (!elements.ok()) {
    return Fault{base::Message(elements.status()), "write a list such as \"a,b\""};
  }
  std::vector<T> values;
  std::set<std::string_view> seen;
  for (const std::string& element : *elements) {
    if (!seen.insert(element).second) {
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

constexpr char kLabelHint[] =
    "use letters, digits, '-', '_' and '.', 63 at most, with a letter or digit at both ends";

struct MapRules {
  bool values_are_labels = true;
  std::string_view key_prefix = {};
};

ValueOr<StringMap> CheckedMap(const std::string& text, const MapRules& rules) {
  absl::StatusOr<StringMap> map = base::ParseMap(text);
  if (!map.ok()) return Fault{base::Message(map.status()), "write a map such as \"a=1,b=2\""};
  for (const auto& [key, value] : *map) {
    const std::string full_key = std::string(rules.key_prefix) + key;
    if (IsReserved(full_key)) {
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

}  // namespace nomad_harvester::config
