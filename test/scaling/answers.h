// SPDX-License-Identifier: Apache-2.0
// What the two systems answer to a write, as the statuses that their clients return.
#ifndef NOMAD_HARVESTER_TEST_SCALING_ANSWERS_H_
#define NOMAD_HARVESTER_TEST_SCALING_ANSWERS_H_

#include <string>

#include "nomad_harvester/kube/error.h"
#include "nomad_harvester/nomad/error.h"

#include "absl/status/status.h"
#include "rules/retries.h"

namespace nomad_harvester::scaling {

inline absl::Status KubeAnswer(int http_status, const std::string& reason,
                               const std::string& message = "no") {
  return kube::ToStatus({.status = http_status,
                         .headers = {},
                         .body = R"({"kind": "Status", "apiVersion": "v1", "status": "Failure", )"
                                 R"("code": )" +
                                 std::to_string(http_status) + R"(, "reason": ")" + reason +
                                 R"(", "message": ")" + message + R"("})"},
                        "patch VM a");
}
inline absl::Status NomadAnswer(int http_status, const std::string& text) {
  return nomad::ToStatus({.status = http_status, .headers = {}, .body = text}, "drain node a");
}

inline Effect Refusal(const std::string& message = "denied by policy") {
  return EffectOf(KubeAnswer(422, "Invalid", message));
}
inline Effect Conflict() { return EffectOf(KubeAnswer(409, "Conflict")); }
inline Effect Failure() { return EffectOf(KubeAnswer(503, "ServiceUnavailable", "busy")); }
inline Effect Done() { return {.verdict = Verdict::kDone}; }

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_TEST_SCALING_ANSWERS_H_
