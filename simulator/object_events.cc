// SPDX-License-Identifier: Apache-2.0
#include "object_events.h"

#include <set>
#include <string>
#include <utility>

#include "nomad_harvester/base/json.h"

namespace nomad_harvester::simulator {
namespace {

// The plugin's own keys (docs/configuration.md, "On the objects").
constexpr char kMark[] = "nomad-harvester-autoscaler/scale-in";
constexpr char kJoinedAt[] = "nomad-harvester-autoscaler/joined-at";

Event MakeEvent(EventKind kind, const Object& before, const Object& after) {
  const Json& object = after != nullptr ? *after : *before;
  Event event;
  event.kind = kind;
  event.ns = NamespaceOf(object);
  event.name = NameOf(object);
  event.id = UidOf(object);
  event.object = after != nullptr ? after : before;
  event.before = after != nullptr ? before : nullptr;
  return event;
}

Json AnnotationsOf(const Object& object) {
  const Json* annotations = base::FindPath(*object, {"metadata", "annotations"});
  return annotations != nullptr && annotations->is_object() ? *annotations : Json::object();
}

EventKind AnnotationKind(const std::string& key, bool is_there) {
  if (key == kMark) return is_there ? EventKind::kMarked : EventKind::kUnmarked;
  if (key == kJoinedAt && is_there) return EventKind::kJoinRecorded;
  return EventKind::kVmAnnotated;
}

void AddAnnotationEvents(const Object& before, const Object& after, std::vector<Event>& events) {
  const Json old = AnnotationsOf(before);
  const Json now = AnnotationsOf(after);
  std::set<std::string> keys;
  for (const auto& [key, value] : old.items()) keys.insert(key);
  for (const auto& [key, value] : now.items()) keys.insert(key);
  for (const std::string& key : keys) {
    if (old.value(key, Json()) == now.value(key, Json())) continue;
    Event event = MakeEvent(AnnotationKind(key, now.contains(key)), before, after);
    if (event.kind == EventKind::kVmAnnotated) event.detail = key;
    events.push_back(std::move(event));
  }
}

std::vector<Event> VmEvents(const Object& before, const Object& after) {
  std::vector<Event> events;
  if (before == nullptr) return {MakeEvent(EventKind::kVmCreated, before, after)};
  if (after == nullptr) {
    // Without finalizers a delete request removes the object immediately.
    if (!IsTerminating(*before)) {
      events.push_back(MakeEvent(EventKind::kVmDeleteRequested, before, after));
    }
    events.push_back(MakeEvent(EventKind::kVmGone, before, after));
    return events;
  }
  if (IsTerminating(*after) && !IsTerminating(*before)) {
    events.push_back(MakeEvent(EventKind::kVmDeleteRequested, before, after));
  }
  AddAnnotationEvents(before, after, events);
  return events;
}

bool HasOwner(const Object& object) {
  const Json* owners = base::FindPath(*object, {"metadata", "ownerReferences"});
  return owners != nullptr && owners->is_array() && !owners->empty();
}

}  // namespace

std::vector<Event> EventsOf(const ResourceDef& def, const Object& before, const Object& after) {
  if (&def == &kVms) return VmEvents(before, after);
  if (&def == &kSecrets) {
    if (before == nullptr) return {MakeEvent(EventKind::kSecretCreated, before, after)};
    if (after == nullptr) return {MakeEvent(EventKind::kSecretGone, before, after)};
    if (!HasOwner(before) && HasOwner(after)) {
      return {MakeEvent(EventKind::kSecretOwned, before, after)};
    }
  }
  if (&def == &kClaims) {
    if (before == nullptr) return {MakeEvent(EventKind::kClaimCreated, before, after)};
    if (after == nullptr) return {MakeEvent(EventKind::kClaimGone, before, after)};
  }
  if (&def == &kLeases && after != nullptr) {
    return {MakeEvent(EventKind::kLeaseWritten, before, after)};
  }
  if ((&def == &kEvents || &def == &kCoreEvents) && after != nullptr) {
    Event event = MakeEvent(EventKind::kEventRecorded, before, after);
    event.detail = base::GetString(*after, "reason");
    return {std::move(event)};
  }
  return {};
}

}  // namespace nomad_harvester::simulator
