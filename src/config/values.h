// SPDX-License-Identifier: Apache-2.0
// Parsers of single values; each returns the value or a Fault.
#ifndef NOMAD_HARVESTER_SRC_CONFIG_VALUES_H_
#define NOMAD_HARVESTER_SRC_CONFIG_VALUES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "nomad_harvester/base/secret.h"
#include "nomad_harvester/base/time.h"
#include "nomad_harvester/config/pool_policy.h"
#include "nomad_harvester/policy/strategies.h"

#include "config_reader.h"

namespace nomad_harvester::config {

// Anything, empty or not.
ValueOr<std::string> AnyText(const std::string& text);
// Not empty, no NUL.
ValueOr<std::string> Text(const std::string& text);
// A file's path. A value that looks like a file's content is not quoted.
ValueOr<std::string> FilePath(const std::string& text);
// A secret for a header: visible ASCII.
ValueOr<base::Secret> Token(const std::string& text);
// Any other secret.
ValueOr<base::Secret> SecretText(const std::string& text);

ValueOr<bool> Boolean(const std::string& text);
ValueOr<base::Duration> PositiveDuration(const std::string& text);
// At least an hour.
ValueOr<base::Duration> Expiry(const std::string& text);
ValueOr<base::Duration> SignedDuration(const std::string& text);
ValueOr<CronWindow> Window(const std::string& text);
// A positive duration without a fraction of a second.
ValueOr<std::int64_t> WholeSeconds(const std::string& text);

// A whole number from 1 to `largest`.
ValueOr<std::int64_t> CountUpTo(const std::string& text, std::int64_t largest);
ValueOr<std::int64_t> Count(const std::string& text);
// The same or 0.
ValueOr<std::int64_t> CountOrZero(const std::string& text);
// A whole number greater than 0, or "1%" to "100%".
ValueOr<Share> CountOrPercentage(const std::string& text);
// The smallest disk, 1Mi. "100" would be 100 bytes.
inline constexpr std::int64_t kMinDisk = std::int64_t{1024} * 1024;
// Bytes, more than 0.
ValueOr<std::int64_t> Bytes(const std::string& text);
// Like Bytes, but at least `least`, written `least_text`, because a plain number of bytes is hardly
// ever intended.
ValueOr<std::int64_t> BytesFrom(const std::string& text, std::int64_t least,
                                std::string_view least_text);
// "10Gi" for "10", and "10Gi@fast" for "10@fast"; empty if the text does not begin with a plain
// whole number.
std::string WithUnit(const std::string& text);

ValueOr<std::string> DnsLabel(const std::string& text, std::size_t max_length);
// "NS/NAME" of a resource.
ValueOr<NamespacedName> ResourceRef(const std::string& text);
// "NS/NAME" or "NS/NAME:VERSION" of a template.
ValueOr<TemplateRef> TemplateReference(const std::string& text);
// "NS/X", where X is a resource name or a display name.
ValueOr<NamespacedName> ImageRef(const std::string& text);
// Lists without duplicates; faults quote the element.
ValueOr<std::vector<NamespacedName>> ResourceRefs(const std::string& text);
ValueOr<std::vector<NetworkRef>> Networks(const std::string& text);

// Maps; keys reserved for the plugin, Harvester or KubeVirt are faults.
ValueOr<StringMap> Labels(const std::string& text);
ValueOr<StringMap> Annotations(const std::string& text);
// Keys without the prefix "tag.harvesterhci.io/".
ValueOr<StringMap> Tags(const std::string& text);
// Labels of Harvester's hosts; keys of Harvester's networks are faults.
ValueOr<StringMap> HostLabels(const std::string& text);

// The list data_disks: "SIZE[@STORAGECLASS][:rwo]"; elements may be equal.
ValueOr<std::vector<policy::DataDisk>> DataDisks(const std::string& text);
// The lists of devices: "RESOURCE[:COUNT]", each resource once.
ValueOr<std::vector<policy::DeviceRequest>> DeviceRequests(const std::string& text);
// The list availability_zones: label values.
ValueOr<std::vector<std::string>> Zones(const std::string& text);
// Names that follow kHoldAnnotationPrefix, each once.
ValueOr<std::vector<std::string>> Holds(const std::string& text);
// Names of Nomad's task drivers, each once.
ValueOr<std::vector<std::string>> Drivers(const std::string& text);
ValueOr<std::vector<std::string>> TemplatePartList(const std::string& text);
// The name of an object without a namespace.
ValueOr<std::string> ObjectName(const std::string& text);
// A CPU model of KubeVirt, "host-model" or "host-passthrough".
ValueOr<std::string> CpuModel(const std::string& text);

ValueOr<std::string> NodeAttribute(const std::string& text);

// "http(s)://host[:port][/path]" without user, query or fragment. Trailing slashes are removed, so
// that a path can be appended. Messages omit a text with '@' or '?', which may contain a secret.
ValueOr<std::string> HttpUrl(const std::string& text);
// The same, or "unix:///path".
ValueOr<std::string> NomadAddress(const std::string& text);
// A host name or an IP address, without port.
ValueOr<std::string> HostName(const std::string& text);
// Where to listen: "IPv4:PORT", "[IPv6]:PORT" or "localhost:PORT".
ValueOr<std::string> ListenAddress(const std::string& text);

// One of the case-sensitive names; an error suggests the nearest one.
ValueOr<std::string> OneOfNames(const std::vector<std::string>& names, const std::string& text);

// A parser for ConfigReader::Read that maps a name to its value. `choices` must outlive it.
template <typename T, std::size_t N>
auto OneOf(const policy::Choice<T> (&choices)[N]) {
  return [&choices](const std::string& text) -> ValueOr<T> {
    std::vector<std::string> names;
    for (const policy::Choice<T>& choice : choices) {
      if (choice.name == text) return choice.value;
      names.emplace_back(choice.name);
    }
    return std::get<Fault>(OneOfNames(names, text));
  };
}

}  // namespace nomad_harvester::config

#endif  // NOMAD_HARVESTER_SRC_CONFIG_VALUES_H_
