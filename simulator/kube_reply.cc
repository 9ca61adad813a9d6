// SPDX-License-Identifier: Apache-2.0
#include "kube_reply.h"

#include <utility>

#include "nomad_harvester/base/json.h"

#include "nlohmann/json.hpp"

namespace nomad_harvester::simulator {
namespace {

using Json = nlohmann::json;

// The token's user; only refusals contain the name.
constexpr char kUser[] = "system:serviceaccount:nomad:nomad-harvester-autoscaler";

Json Details(const ResourceDef& def, std::string_view kind, const std::string& name) {
  Json details = {{"kind", kind}};
  if (!name.empty()) details["name"] = name;
  if (!def.group.empty()) details["group"] = def.group;
  return details;
}

http::HttpResponse Failure(int status, std::string_view reason, std::string_view message,
                           Json details = nullptr) {
  Json body = {{"kind", "Status"},    {"apiVersion", "v1"}, {"metadata", Json::object()},
               {"status", "Failure"}, {"message", message}, {"reason", reason},
               {"code", status}};
  if (!details.is_null()) body["details"] = std::move(details);
  return JsonReply(status, body);
}

}  // namespace

http::HttpResponse JsonReply(int status, const nlohmann::json& body) {
  return JsonTextReply(status, base::DumpJson(body));
}

http::HttpResponse JsonTextReply(int status, std::string body) {
  http::HttpResponse response;
  response.status = status;
  response.headers.Set("Content-Type", "application/json");
  response.body = std::move(body);
  return response;
}

http::HttpResponse TextReply(int status, std::string body) {
  http::HttpResponse response;
  response.status = status;
  response.headers.Set("Content-Type", "text/plain; charset=utf-8");
  response.body = std::move(body);
  return response;
}

http::HttpResponse AnyReply(int status, std::string body) {
  const bool is_object = !body.empty() && body.front() == '{';
  http::HttpResponse response = TextReply(status, std::move(body));
  if (is_object) response.headers.Set("Content-Type", "application/json");
  return response;
}

http::HttpResponse StatusReply(int status, std::string_view reason, std::string_view message) {
  return Failure(status, reason, message);
}

http::HttpResponse NotFound(const ResourceDef& def, const std::string& name) {
  return Failure(404, "NotFound", QualifiedPlural(def) + " \"" + name + "\" not found",
                 Details(def, def.plural, name));
}

http::HttpResponse AlreadyExists(const ResourceDef& def, const std::string& name,
                                 bool terminating) {
  return Failure(409, "AlreadyExists",
                 (terminating ? "object is being deleted: " : "") + QualifiedPlural(def) + " \"" +
                     name + "\" already exists",
                 Details(def, def.plural, name));
}

http::HttpResponse Modified(const ResourceDef& def, const std::string& name) {
  return Failure(409, "Conflict",
                 "Operation cannot be fulfilled on " + QualifiedPlural(def) + " \"" + name +
                     "\": the object has been modified; please apply your changes to the latest "
                     "version and try again",
                 Details(def, def.plural, name));
}

http::HttpResponse PreconditionFailed(const ResourceDef& def, const std::string& name,
                                      std::string_view what, const std::string& wanted,
                                      const std::string& is) {
  const std::string_view why = what == "UID"
                                   ? "The object might have been deleted and then recreated"
                                   : "The object might have been modified";
  std::string message = "Operation cannot be fulfilled on " + QualifiedKind(def) + " \"" + name;
  message.append("\": the ").append(what).append(" in the precondition (" + wanted);
  message.append(") does not match the ").append(what).append(" in record (" + is + "). ");
  message.append(why);
  return Failure(409, "Conflict", message, Details(def, def.kind, name));
}

http::HttpResponse Forbidden(const ResourceDef& def, const std::string& ns, const std::string& name,
                             std::string_view verb) {
  std::string message = QualifiedPlural(def);
  if (!name.empty()) message += " \"" + name + "\"";
  message.append(" is forbidden: User \"").append(kUser).append("\" cannot ").append(verb);
  message.append(" resource \"").append(def.plural).append("\" in API group \"");
  message.append(def.group).append("\"");
  message += ns.empty() ? " at the cluster scope" : " in the namespace \"" + ns + "\"";
  return Failure(403, "Forbidden", message, Details(def, def.plural, name));
}

http::HttpResponse Invalid(const ResourceDef& def, const std::string& name,
                           const std::vector<FieldProblem>& problems) {
  Json causes = Json::array();
  std::string text;
  std::string last;
  for (const FieldProblem& problem : problems) {
    causes.push_back(
        {{"reason", problem.reason}, {"message", problem.message}, {"field", problem.field}});
    // A problem that two validators found is reported once.
    const std::string one = problem.field + ": " + problem.message;
    if (one == last) continue;
    text += (text.empty() ? "" : ", ") + one;
    last = one;
  }
  // Both groups' Events are validated as the core group's
  // (kubernetes/kubernetes:pkg/apis/core/validation/events.go).
  const ResourceDef& validated = &def == &kEvents ? kCoreEvents : def;
  Json details = Details(validated, def.kind, name);
  details["causes"] = std::move(causes);
  return Failure(422, "Invalid", QualifiedKind(validated) + " \"" + name + "\" is invalid: " + text,
                 std::move(details));
}

http::HttpResponse Denied(int status, std::string_view reason, std::string_view webhook,
                          std::string_view message) {
  std::string text = "admission webhook \"";
  text.append(webhook).append("\" denied the request: ").append(message);
  return Failure(status, reason, text);
}

}  // namespace nomad_harvester::simulator
