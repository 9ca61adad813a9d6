// SPDX-License-Identifier: Apache-2.0
// GET of objects, and paginated lists.
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "nomad_harvester/base/encoding.h"
#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"

#include "kube_api.h"
#include "kube_reply.h"
#include "pod_requests.h"
#include "selector.h"

namespace nomad_harvester::simulator {
namespace {

// kubernetes/kubernetes:staging/src/k8s.io/apiserver/pkg/storage/continue.go. Revision -1 is the
// token of a 410: the list continues with the present objects.
struct Position {
  std::int64_t revision = 0;
  std::pair<std::string, std::string> after;
};

std::string Encode(const Position& position) {
  const Json token = {{"v", "meta.k8s.io/v1"},
                      {"rv", position.revision},
                      {"start", position.after.first + "/" + position.after.second}};
  return base::Base64Encode(base::DumpJson(token));
}

std::optional<Position> Decode(const std::string& text) {
  const auto bytes = base::Base64Decode(text);
  if (!bytes.ok()) return std::nullopt;
  const auto token = base::ParseJson(*bytes, "the token");
  if (!token.ok()) return std::nullopt;
  const std::string start = base::GetString(*token, "start");
  const std::size_t slash = start.find('/');
  if (slash == std::string::npos) return std::nullopt;
  return Position{base::GetInt(*token, "rv"), {start.substr(0, slash), start.substr(slash + 1)}};
}

// Beside those that every resource has (kubernetes/kubernetes:pkg/apis/{core,events}/v1/
// conversion.go).
std::vector<std::string> SelectableFields(const ResourceDef& def) {
  if (&def == &kPods) return {"spec.nodeName", "status.phase"};
  if (def.plural != kEvents.plural) return {};
  const bool core = &def == &kCoreEvents;
  std::vector<std::string> fields = {"reason", "type",
                                     core ? "reportingComponent" : "reportingController"};
  for (const char* member :
       {"kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"}) {
    fields.push_back(std::string(core ? "involvedObject." : "regarding.") + member);
  }
  return fields;
}

// An Event of events.k8s.io, as the core group shows it (kubernetes/kubernetes:pkg/apis/events/v1/
// conversion.go).
Json CoreEvent(const Json& event) {
  Json core = event;
  core["apiVersion"] = ApiVersion(kCoreEvents);
  for (const auto& [newer, older] : {std::pair("regarding", "involvedObject"),
                                     {"note", "message"},
                                     {"reportingController", "reportingComponent"}}) {
    if (!core.contains(newer)) continue;
    core[older] = core[newer];
    core.erase(newer);
  }
  return core;
}

http::HttpResponse Expired(const Position& position) {
  Json body = *base::ParseJson(
      StatusReply(
          410, "Expired",
          "The provided continue parameter is too old to display a consistent list result. You "
          "can start a new list without the continue parameter, or use the continue token in "
          "this response to retrieve the remainder of the results. Continuing with the "
          "provided token results in an inconsistent list - objects that were created, "
          "modified, or deleted between the time the first chunk was returned and now may show "
          "up in the list.")
          .body,
      "a status");
  body["metadata"]["continue"] = Encode({-1, position.after});
  return JsonReply(410, body);
}

}  // namespace

const KubeStore::Objects& KubeApi::Objects(const ResourceDef& def) {
  if (&def == &kCoreEvents) {
    events_ = store_.All(kCoreEvents);
    for (const auto& [key, event] : store_.All(kEvents)) {
      events_.emplace(key, std::make_shared<const Json>(CoreEvent(*event)));
    }
    return events_;
  }
  if (&def != &kPods) return store_.All(def);
  pods_ = store_.All(kPods);
  std::map<KubeStore::Key, std::pair<Object, Object>> made;
  for (const auto& [key, instance] : store_.All(kInstances)) {
    if (base::TextAt(*instance, {"status", "nodeName"}).empty()) continue;
    const auto before = launcher_pods_.find(key);
    const bool is_current = before != launcher_pods_.end() && before->second.first == instance;
    const Object pod =
        is_current ? before->second.second : std::make_shared<const Json>(LauncherPod(*instance));
    made[key] = {instance, pod};
    pods_.emplace(KubeStore::Key{key.first, NameOf(*pod)}, pod);
  }
  launcher_pods_ = std::move(made);
  return pods_;
}

http::HttpResponse KubeApi::Get(const KubeCall& call) {
  const KubeStore::Objects& objects = Objects(*call.def);
  const auto object = objects.find({call.ns, call.name});
  if (object == objects.end()) return NotFound(*call.def, call.name);
  return JsonReply(200, *object->second);
}

http::HttpResponse KubeApi::List(const KubeCall& call, bool metadata_only) {
  const auto labels = Selector::OfLabels(call.target.Query("labelSelector"));
  if (!labels.ok()) return StatusReply(400, "BadRequest", base::Message(labels.status()));
  const auto fields =
      Selector::OfFields(call.target.Query("fieldSelector"), SelectableFields(*call.def));
  if (!fields.ok()) return StatusReply(400, "BadRequest", base::Message(fields.status()));
  const std::int64_t limit = base::ParseInt(call.target.Query("limit")).value_or(0);

  Position position{store_.revision(), {}};
  const KubeStore::Objects* objects = &Objects(*call.def);
  const std::string token = call.target.Query("continue");
  if (!token.empty()) {
    const auto decoded = Decode(token);
    if (!decoded) {
      return StatusReply(400, "BadRequest",
                         "invalid continue token: continue key is not valid: invalid character");
    }
    position.after = decoded->after;
    if (decoded->revision != -1) {
      position.revision = decoded->revision;
      objects = store_.Kept(*call.def, decoded->revision);
      if (objects == nullptr) return Expired(*decoded);
    }
  }

  // Those of objects that are gone are dropped with the others.
  if (texts_.size() > 8 * objects->size() + 64) texts_.clear();
  std::string items;
  std::int64_t count = 0;
  std::int64_t remaining = 0;
  Position next = position;
  for (auto it = token.empty() ? objects->begin() : objects->upper_bound(position.after);
       it != objects->end(); ++it) {
    if (!call.ns.empty() && it->first.first != call.ns) continue;
    // A full page is followed by another one while objects are left, whether selected or not: the
    // last page may be empty (observed on kube-apiserver 1.32.3).
    if (limit > 0 && count == limit) {
      ++remaining;
      continue;
    }
    if (!labels->Matches(*it->second) || !fields->Matches(*it->second)) continue;
    next.after = it->first;
    if (count++ > 0) items += ',';
    items += ItemText(*call.def, it->first, it->second, metadata_only);
  }

  Json metadata = {{"resourceVersion", std::to_string(position.revision)}};
  if (remaining > 0) {
    if (token.empty()) store_.Keep(*call.def, *objects);
    metadata["continue"] = Encode(next);
    if (labels->empty() && fields->empty()) metadata["remainingItemCount"] = remaining;
  } else if (call.def->custom && !metadata_only) {
    metadata["continue"] = "";
  }
  std::string body = base::DumpJson(
      {{"kind", metadata_only ? "PartialObjectMetadataList" : std::string(call.def->kind) + "List"},
       {"apiVersion", metadata_only ? "meta.k8s.io/v1" : ApiVersion(*call.def)},
       {"metadata", std::move(metadata)}});
  body.pop_back();
  return JsonTextReply(200, body + ",\"items\":[" + items + "]}");
}

const std::string& KubeApi::ItemText(const ResourceDef& def, const KubeStore::Key& key,
                                     const Object& object, bool metadata_only) {
  ItemTexts& texts = texts_[{&def, key}];
  if (texts.object != object) texts = {object, {}, {}};
  std::string& text = metadata_only ? texts.metadata_only : texts.whole;
  if (!text.empty()) return text;
  if (metadata_only) {
    return text = base::DumpJson({{"kind", "PartialObjectMetadata"},
                                  {"apiVersion", "meta.k8s.io/v1"},
                                  {"metadata", object->at("metadata")}});
  }
  if (def.custom) return text = base::DumpJson(*object);
  // List items of built-in resources have no kind (observed on kube-apiserver 1.32.3).
  Json item = *object;
  item.erase("kind");
  item.erase("apiVersion");
  return text = base::DumpJson(item);
}

}  // namespace nomad_harvester::simulator
