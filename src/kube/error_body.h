// SPDX-License-Identifier: Apache-2.0
// What the body of a refusal says, whoever wrote it.
#ifndef NOMAD_HARVESTER_SRC_KUBE_ERROR_BODY_H_
#define NOMAD_HARVESTER_SRC_KUBE_ERROR_BODY_H_

#include <string>
#include <string_view>

#include "nomad_harvester/http/message.h"
#include "nomad_harvester/kube/error.h"

namespace nomad_harvester::kube {

// Reads a metav1.Status, Rancher's {"type":"error","status":…,"code":…,"message":…}, an HTML page
// (its title) or plain text. The message is one line of valid UTF-8 of at most about 1,000 bytes;
// it is empty if the body says nothing.
KubeError ReadErrorBody(const http::HttpResponse& response);

// White space and control characters become single spaces, as errors are joined line by line; cut
// after about 1,000 bytes; valid UTF-8.
std::string OneLine(std::string_view text);

}  // namespace nomad_harvester::kube

#endif  // NOMAD_HARVESTER_SRC_KUBE_ERROR_BODY_H_
