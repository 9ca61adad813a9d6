// SPDX-License-Identifier: Apache-2.0
// Reads the body of an error response, from Kubernetes, Rancher or a proxy.
#ifndef NOMAD_HARVESTER_SRC_KUBE_ERROR_BODY_H_
#define NOMAD_HARVESTER_SRC_KUBE_ERROR_BODY_H_

#include <string>
#include <string_view>

#include "nomad_harvester/http/message.h"
#include "nomad_harvester/kube/error.h"

namespace nomad_harvester::kube {

// Reads a metav1.Status, Rancher's {"type":"error","status":…,"code":…,"message":…}, an HTML page
// (its title) or plain text. The message is one line of valid UTF-8 of at most about 1,000 bytes;
// empty if the body has no message.
KubeError ReadErrorBody(const http::HttpResponse& response);

// One line: white space and control characters become single spaces. Valid UTF-8, cut after about
// 1,000 bytes.
std::string OneLine(std::string_view text);

}  // namespace nomad_harvester::kube

#endif  // NOMAD_HARVESTER_SRC_KUBE_ERROR_BODY_H_
