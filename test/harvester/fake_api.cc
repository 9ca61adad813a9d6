#include "harvester/fake_api.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "nomad_harvester/base/status.h"

namespace nomad_harvester::harvester {
namespace {

using http::HttpRequest;
using http::HttpResponse;
using nlohmann::json;

std::string Unescape(const std::string& text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      result.push_back(static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16)));
      i += 2;
    } else {
      result.push_back(text[i]);
    }
  }
  return result;
}

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

FakeApi::Call ToCall(const HttpRequest& request) {
  const std::size_t mark = request.target.find('?');
  FakeApi::Call call{request.method, request.target.substr(0, mark), {}, {}, request.effect};
  if (mark != std::string::npos) {
    for (const std::string& pair : Split(request.target.substr(mark + 1), '&')) {
      const std::size_t equals = pair.find('=');
      call.query[pair.substr(0, equals)] = Unescape(pair.substr(equals + 1));
    }
  }
  if (!request.body.empty()) call.body = json::parse(request.body);
  return call;
}

HttpResponse Reply(int status, const json& body) {
  return {status, {{"Content-Type", "application/json"}, {"Date", FakeApi::kDate}}, body.dump()};
}

HttpResponse Refusal(int status, const std::string& reason, const std::string& message) {
  return Reply(status, {{"kind", "Status"},
                        {"apiVersion", "v1"},
                        {"status", "Failure"},
                        {"reason", reason},
                        {"message", message},
                        {"code", status}});
}

// "k=v,k=v": the only selectors that are sent.
bool Selected(const json& object, const std::string& selector) {
  for (const std::string& term : Split(selector, ',')) {
    const std::size_t equals = term.find('=');
    const json labels = object["metadata"].value("labels", json::object());
    if (labels.value(term.substr(0, equals), "") != term.substr(equals + 1)) return false;
  }
  return true;
}

std::string CollectionPath(const kube::ResourceType& type, const std::string& ns) {
  const std::string group = type.group.empty() ? "/api" : "/apis/" + std::string(type.group);
  return group + "/" + std::string(type.version) + "/namespaces/" + ns + "/" +
         std::string(type.plural);
}

// The name in a path of an object; empty for a collection:
// /api/<version>/namespaces/<ns>/<plural>[/<name>], /apis/<group>/… with one segment more.
std::string TakeName(std::string& path) {
  const std::size_t segments = path.starts_with("/apis/") ? 7 : 6;
  if (Split(path, '/').size() <= segments) return "";
  const std::size_t slash = path.rfind('/');
  std::string name = Unescape(path.substr(slash + 1));
  path.resize(slash);
  return name;
}

}  // namespace

absl::StatusOr<HttpResponse> FakeApi::Send(const runtime::Context& context,
                                           const HttpRequest& request) {
  NH_RETURN_IF_ERROR(context.Check());
  const Call call = ToCall(request);
  calls_.push_back(call);
  if (before) before(call);
  if (const auto answer = answers_.find(request.method); answer != answers_.end()) {
    return answers_.extract(answer).mapped();
  }
  HttpResponse response = Handle(call);
  if (lose_reply_of_ != request.method) return response;
  lose_reply_of_.reset();
  return base::Unavailable("the reply was lost");
}

HttpResponse FakeApi::Handle(const Call& call) {
  std::string path = call.path;
  const std::string name = TakeName(path);
  Objects& objects = collections_[path];
  if (name.empty()) {
    return call.method == http::Method::kPost ? Create(call, objects) : List(call, objects);
  }
  const auto found = objects.find(name);
  if (found == objects.end()) return Refusal(404, "NotFound", "\"" + name + "\" not found");
  switch (call.method) {
    case http::Method::kGet:
      return Reply(200, found->second);
    case http::Method::kPatch:
      return Patch(call, found->second);
    case http::Method::kDelete:
      return Delete(call, objects, name);
    default:
      return Refusal(405, "MethodNotAllowed", "not here");
  }
}

HttpResponse FakeApi::List(const Call& call, const Objects& objects) const {
  const auto query = [&call](const char* key) {
    const auto found = call.query.find(key);
    return found == call.query.end() ? "" : found->second;
  };
  const std::string limit = query("limit");
  const std::string after = query("continue");
  json items = json::array();
  std::string last;
  for (auto object = objects.upper_bound(after); object != objects.end(); ++object) {
    if (!Selected(object->second, query("labelSelector"))) continue;
    if (!limit.empty() && items.size() == std::stoul(limit)) {
      return Reply(
          200, {{"metadata", {{"resourceVersion", "1"}, {"continue", last}}}, {"items", items}});
    }
    last = object->first;
    items.push_back(object->second);
  }
  return Reply(200, {{"metadata", {{"resourceVersion", "1"}}}, {"items", items}});
}

HttpResponse FakeApi::Create(const Call& call, Objects& objects) {
  const std::string name = call.body["metadata"]["name"].get<std::string>();
  if (objects.contains(name)) {
    return Refusal(409, "AlreadyExists", "\"" + name + "\" already exists");
  }
  json object = Complete(call.body);
  if (!call.query.contains("dryRun")) objects[name] = object;
  return Reply(201, object);
}

HttpResponse FakeApi::Patch(const Call& call, json& object) {
  const json wanted = call.body["metadata"].value("resourceVersion", json());
  if (!wanted.is_null() && wanted != object["metadata"]["resourceVersion"]) {
    return Refusal(409, "Conflict", "the object has been modified");
  }
  object.merge_patch(call.body);
  Touch(object);
  return Reply(200, object);
}

// An object with finalizers stays, terminating; any other is gone at once.
HttpResponse FakeApi::Delete(const Call& call, Objects& objects, const std::string& name) {
  json& object = objects[name];
  const json conditions = call.body.value("preconditions", json::object());
  for (const auto& [key, value] : conditions.items()) {
    if (object["metadata"][key] != value) {
      return Refusal(409, "Conflict", "the " + key + " in the precondition differs");
    }
  }
  const json deleted = object;
  if (object["metadata"].contains("finalizers")) {
    object["metadata"]["deletionTimestamp"] = "2026-11-21T02:03:04Z";
    Touch(object);
  } else {
    objects.erase(name);
  }
  return Reply(200, deleted);
}

json FakeApi::Complete(json object) {
  json& metadata = object["metadata"];
  if (!metadata.contains("uid")) metadata["uid"] = "uid-" + std::to_string(++last_uid_);
  if (!metadata.contains("creationTimestamp")) {
    metadata["creationTimestamp"] = "2026-11-21T02:03:04Z";
  }
  if (!metadata.contains("resourceVersion")) Touch(object);
  return object;
}

void FakeApi::Put(const kube::ResourceType& type, const std::string& ns, json object) {
  object["metadata"]["namespace"] = ns;
  object = Complete(std::move(object));
  const std::string name = object["metadata"]["name"].get<std::string>();
  collections_[CollectionPath(type, ns)][name] = std::move(object);
}

json* FakeApi::Find(const kube::ResourceType& type, const std::string& ns,
                    const std::string& name) {
  Objects& objects = collections_[CollectionPath(type, ns)];
  const auto found = objects.find(name);
  return found == objects.end() ? nullptr : &found->second;
}

void FakeApi::Touch(json& object) {
  object["metadata"]["resourceVersion"] = std::to_string(++last_version_);
}

void FakeApi::Remove(const kube::ResourceType& type, const std::string& ns,
                     const std::string& name) {
  collections_[CollectionPath(type, ns)].erase(name);
}

std::vector<FakeApi::Call> FakeApi::CallsOf(http::Method method) const {
  std::vector<Call> calls;
  std::copy_if(calls_.begin(), calls_.end(), std::back_inserter(calls),
               [method](const Call& call) { return call.method == method; });
  return calls;
}

void FakeApi::Answer(http::Method method, int status, const std::string& reason,
                     const std::string& message) {
  answers_[method] = Refusal(status, reason, message);
}

}  // namespace nomad_harvester::harvester
