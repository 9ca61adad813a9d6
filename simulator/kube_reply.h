// SPDX-License-Identifier: Apache-2.0
// Replies of the simulated Kubernetes API: objects, and refusals as metav1.Status.
#ifndef NOMAD_HARVESTER_SIMULATOR_KUBE_REPLY_H_
#define NOMAD_HARVESTER_SIMULATOR_KUBE_REPLY_H_

#include <string>
#include <string_view>
#include <vector>

#include "nomad_harvester/http/message.h"

#include "kube_types.h"
#include "nlohmann/json_fwd.hpp"

namespace nomad_harvester::simulator {

http::HttpResponse JsonReply(int status, const nlohmann::json& body);
http::HttpResponse JsonTextReply(int status, std::string body);
http::HttpResponse TextReply(int status, std::string body);
// JSON if the body looks like an object, else text.
http::HttpResponse AnyReply(int status, std::string body);

// The constructors of kubernetes/kubernetes:staging/src/k8s.io/apimachinery/pkg/api/errors/
// errors.go, with their reasons.
http::HttpResponse StatusReply(int status, std::string_view reason, std::string_view message);
http::HttpResponse NotFound(const ResourceDef& def, const std::string& name);
http::HttpResponse AlreadyExists(const ResourceDef& def, const std::string& name, bool terminating);
http::HttpResponse Modified(const ResourceDef& def, const std::string& name);
// A DELETE's precondition: `what` is "UID" or "ResourceVersion". Its details name the kind, not the
// plural (observed on kube-apiserver 1.32.3).
http::HttpResponse PreconditionFailed(const ResourceDef& def, const std::string& name,
                                      std::string_view what, const std::string& wanted,
                                      const std::string& is);
http::HttpResponse Forbidden(const ResourceDef& def, const std::string& ns, const std::string& name,
                             std::string_view verb);

struct FieldProblem {
  std::string field;
  std::string message;
  std::string reason = "FieldValueInvalid";
};
http::HttpResponse Invalid(const ResourceDef& def, const std::string& name,
                           const std::vector<FieldProblem>& problems);
// A webhook's denial (kubernetes/kubernetes:staging/src/k8s.io/apiserver/pkg/admission/plugin/
// webhook/errors/statuserror.go).
http::HttpResponse Denied(int status, std::string_view reason, std::string_view webhook,
                          std::string_view message);

}  // namespace nomad_harvester::simulator

#endif  // NOMAD_HARVESTER_SIMULATOR_KUBE_REPLY_H_
