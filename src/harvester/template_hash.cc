// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/harvester/template_hash.h"

#include <string>
#include <string_view>
#include <utility>

#include "nomad_harvester/base/encoding.h"
#include "nomad_harvester/base/json.h"

#include "nlohmann/json.hpp"

namespace nomad_harvester::harvester {
namespace {

using nlohmann::json;

// Another version whenever the document changes for VMs that do not: else a new release would
// report every VM as drifted.
constexpr char kVersion[] = "v2:";

std::string_view VersionOf(std::string_view value) {
  const std::size_t colon = value.find(':');
  return value.substr(0, colon == std::string_view::npos ? 0 : colon);
}

// The members are sorted by name, so the text of the document is canonical.
json Document(const VmSpec& vm_spec) {
  // Names every member: a new one does not compile until it is decided whether it shapes the VM.
  // Those that are not used below are the same for the whole pool, follow from others, or do not
  // change the machine.
  const auto& [ns, pool, image, cpu_cores, memory_bytes, disk_bytes, networks, run_strategy, labels,
               annotations, tags, template_hash, join_timeout, nodes] = vm_spec;
  json network_names = json::array();
  for (const Network& network : networks) {
    network_names.push_back(network.management ? "management" : network.ns + "/" + network.name);
  }
  return {{"image", image.ns + "/" + image.name},
          // A new image under an old name has another storage class if Harvester derives it from
          // the image's uid.
          {"storage_class", image.storage_class},
          {"cpu", cpu_cores},
          {"memory", memory_bytes},
          {"disk", disk_bytes},
          {"networks", std::move(network_names)},
          {"run_strategy", policy::NameOf(run_strategy)},
          {"labels", labels},
          {"annotations", annotations},
          {"tags", tags}};
}

}  // namespace

// The user's texts are base64-encoded, so that those which differ only in invalid UTF-8 have
// different hashes.
std::string TemplateHash(const TemplateSources& sources, const VmSpec& vm_spec) {
  json document = Document(vm_spec);
  document["user_data"] = base::Base64Encode(sources.user_data);
  document["network_data"] = base::Base64Encode(sources.network_data);
  document["template_version"] = sources.template_version;
  document["keys"] = sources.public_keys;
  return kVersion + base::StableHash(base::DumpJson(document));
}

bool IsDrift(std::string_view stored, std::string_view wanted) {
  return !stored.empty() && !wanted.empty() && VersionOf(stored) == VersionOf(wanted) &&
         stored != wanted;
}

}  // namespace nomad_harvester::harvester
