// SPDX-License-Identifier: Apache-2.0
// Decodes replies into objects.
#ifndef NOMAD_HARVESTER_SRC_KUBE_DECODE_H_
#define NOMAD_HARVESTER_SRC_KUBE_DECODE_H_

#include <string>
#include <string_view>
#include <vector>

#include "nomad_harvester/http/message.h"
#include "nomad_harvester/kube/object.h"

#include "absl/status/statusor.h"

namespace nomad_harvester::kube {

// One JSON object. INTERNAL names the purpose.
absl::StatusOr<Observed> DecodeObject(const http::HttpResponse& response, std::string_view purpose);

}  // namespace nomad_harvester::kube

#endif  // NOMAD_HARVESTER_SRC_KUBE_DECODE_H_
