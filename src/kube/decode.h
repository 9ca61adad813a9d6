// SPDX-License-Identifier: Apache-2.0
// Decodes replies into objects and pages.
#ifndef NOMAD_HARVESTER_SRC_KUBE_DECODE_H_
#define NOMAD_HARVESTER_SRC_KUBE_DECODE_H_

#include <string>
#include <string_view>
#include <vector>

#include "nomad_harvester/http/message.h"
#include "nomad_harvester/kube/object.h"

#include "absl/status/statusor.h"

namespace nomad_harvester::kube {

struct Page {
  std::vector<Json> items;
  std::string resource_version;
  std::string continue_token;  // empty: the last page
};

// One JSON object, without metadata.managedFields. INTERNAL names the purpose.
absl::StatusOr<Observed> DecodeObject(const http::HttpResponse& response, std::string_view purpose);

// One page of a list; `drop` as in ListOptions. INTERNAL names the purpose.
absl::StatusOr<Page> DecodePage(const http::HttpResponse& response,
                                const std::vector<std::string>& drop, std::string_view purpose);

}  // namespace nomad_harvester::kube

#endif  // NOMAD_HARVESTER_SRC_KUBE_DECODE_H_
