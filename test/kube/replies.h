// SPDX-License-Identifier: Apache-2.0
// Replies as a real API server sends them.
#ifndef NOMAD_HARVESTER_TEST_KUBE_REPLIES_H_
#define NOMAD_HARVESTER_TEST_KUBE_REPLIES_H_

#include <string>
#include <utility>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/http/message.h"
#include "nomad_harvester/kube/object.h"

#include "nlohmann/json.hpp"

namespace nomad_harvester::kube {

// The body of an error response: a metav1.Status.
inline std::string StatusBody(int code, const std::string& reason, const std::string& message) {
  Json body = {{"kind", "Status"}, {"apiVersion", "v1"},  {"metadata", Json::object()},
               {"code", code},     {"status", "Failure"}, {"message", message}};
  if (!reason.empty()) body["reason"] = reason;
  return base::DumpJson(body);
}

inline http::HttpResponse Response(int status, std::string body, http::Headers headers = {}) {
  return {status, std::move(headers), std::move(body)};
}
inline http::HttpResponse Refusal(int code, const std::string& reason, const std::string& message) {
  return Response(code, StatusBody(code, reason, message));
}

// The text around a webhook's message
// (kubernetes/kubernetes:staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/errors/statuserror.go).
inline std::string Denied(const std::string& words) {
  return "admission webhook \"validator.harvesterhci.io\" denied the request: " + words;
}

// The body of a 404 for a missing object.
inline std::string NotFoundBody(const std::string& name = "web-1") {
  return StatusBody(404, "NotFound", "virtualmachines.kubevirt.io \"" + name + "\" not found");
}
inline std::string ConflictBody() {
  return StatusBody(409, "Conflict",
                    "Operation cannot be fulfilled on virtualmachines.kubevirt.io \"web-1\": the "
                    "object has been modified; please apply your changes to the latest version "
                    "and try again");
}
inline std::string AlreadyExistsBody() {
  return StatusBody(409, "AlreadyExists", "virtualmachines.kubevirt.io \"web-1\" already exists");
}

}  // namespace nomad_harvester::kube

#endif  // NOMAD_HARVESTER_TEST_KUBE_REPLIES_H_
