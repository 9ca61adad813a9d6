// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/harvester/template_hash.h"

#include "nomad_harvester/base/encoding.h"
#include "nomad_harvester/base/json.h"

#include "nlohmann/json.hpp"

namespace nomad_harvester::harvester {

using nlohmann::json;

// The members are sorted by name, so the text of the document is canonical. Sources are
// base64-encoded, so that texts which differ only in invalid UTF-8 have different hashes.
std::string TemplateHash(const TemplateSources& sources) {
  json networks = json::array();
  for (const Network& network : sources.networks) {
    networks.push_back(network.management ? "management" : network.ns + "/" + network.name);
  }
  const json document = {{"user_data", base::Base64Encode(sources.user_data)},
                         {"network_data", base::Base64Encode(sources.network_data)},
                         {"image", sources.image.ns + "/" + sources.image.name},
                         // A new image under an old name has another storage class if Harvester
                         // derives it from the image's uid.
                         {"storage_class", sources.image.storage_class},
                         {"template_version", sources.template_version},
                         {"networks", networks},
                         {"keys", sources.public_keys}};
  return base::StableHash(base::DumpJson(document));
}

}  // namespace nomad_harvester::harvester
