// SPDX-License-Identifier: Apache-2.0
#include "kube_store.h"

#include "nomad_harvester/base/json.h"

namespace nomad_harvester::simulator {
namespace {

constexpr base::Duration kHistory = std::chrono::minutes(5);

}  // namespace

std::string MetaString(const Json& object, std::string_view key) {
  return base::TextAt(object, {"metadata", key});
}

std::string NameOf(const Json& object) { return MetaString(object, "name"); }
std::string NamespaceOf(const Json& object) { return MetaString(object, "namespace"); }
std::string UidOf(const Json& object) { return MetaString(object, "uid"); }

std::string AnnotationOf(const Json& object, std::string_view key) {
  return base::TextAt(object, {"metadata", "annotations", key});
}

bool IsTerminating(const Json& object) { return !MetaString(object, "deletionTimestamp").empty(); }

bool HasFinalizers(const Json& object) {
  const Json* finalizers = base::FindPath(object, {"metadata", "finalizers"});
  return finalizers != nullptr && finalizers->is_array() && !finalizers->empty();
}

bool IsOwnedBy(const Json& object, std::string_view uid) {
  const Json* owners = base::FindPath(object, {"metadata", "ownerReferences"});
  if (owners == nullptr || !owners->is_array()) return false;
  for (const Json& owner : *owners) {
    if (base::GetString(owner, "uid") == uid) return true;
  }
  return false;
}

Object KubeStore::Find(const ResourceDef& def, const std::string& ns,
                       const std::string& name) const {
  const Objects& all = All(def);
  const auto found = all.find({ns, name});
  return found == all.end() ? nullptr : found->second;
}

Object KubeStore::FindByUid(const ResourceDef& def, const std::string& uid) const {
  for (const auto& [key, object] : All(def)) {
    if (UidOf(*object) == uid) return object;
  }
  return nullptr;
}

Object KubeStore::FindByName(const ResourceDef& def, const std::string& name) const {
  for (const auto& [key, object] : All(def)) {
    if (key.second == name) return object;
  }
  return nullptr;
}

const KubeStore::Objects& KubeStore::All(const ResourceDef& def) const {
  static const Objects kNone;
  const auto found = objects_.find(&def);
  return found == objects_.end() ? kNone : found->second;
}

void KubeStore::Stamp(const ResourceDef& def, Json& object) const {
  object["apiVersion"] = ApiVersion(def);
  object["kind"] = def.kind;
  Json& metadata = object["metadata"];
  metadata["uid"] = world_.NextUuid();
  metadata["creationTimestamp"] = base::FormatRfc3339(world_.server_time());
  if (def.custom) metadata["generation"] = 1;
  metadata["managedFields"] = Json::array({{{"manager", "simulator"},
                                            {"operation", "Update"},
                                            {"apiVersion", ApiVersion(def)},
                                            {"time", base::FormatRfc3339(world_.server_time())},
                                            {"fieldsType", "FieldsV1"},
                                            {"fieldsV1", Json::object()}}});
  for (const char* server_set : {"deletionTimestamp", "deletionGracePeriodSeconds"}) {
    metadata.erase(server_set);
  }
}

Object KubeStore::Insert(const ResourceDef& def, Json object) {
  object["metadata"]["resourceVersion"] = std::to_string(++revision_);
  Object stored = std::make_shared<const Json>(std::move(object));
  objects_[&def][{NamespaceOf(*stored), NameOf(*stored)}] = stored;
  Changed(def, nullptr, stored);
  return stored;
}

Object KubeStore::Replace(const ResourceDef& def, Json object) {
  Object& slot = objects_[&def][{NamespaceOf(object), NameOf(object)}];
  object["metadata"]["resourceVersion"] = MetaString(*slot, "resourceVersion");
  if (object == *slot) return slot;
  object["metadata"]["resourceVersion"] = std::to_string(++revision_);
  const Object before = slot;
  const Object after = std::make_shared<const Json>(std::move(object));
  slot = after;
  Changed(def, before, after);
  return after;
}

void KubeStore::Erase(const ResourceDef& def, const std::string& ns, const std::string& name) {
  const Object before = Find(def, ns, name);
  if (before == nullptr) return;
  ++revision_;
  objects_[&def].erase({ns, name});
  Changed(def, before, nullptr);
}

void KubeStore::Keep(const ResourceDef& def, const Objects& objects) {
  std::erase_if(kept_, [this](const Snapshot& old) { return old.until <= world_.now(); });
  if (Kept(def, revision_) != nullptr) return;
  kept_.push_back({&def, revision_, world_.now() + kHistory, objects});
}

const KubeStore::Objects* KubeStore::Kept(const ResourceDef& def, std::int64_t revision) const {
  for (const Snapshot& snapshot : kept_) {
    if (snapshot.def == &def && snapshot.revision == revision && snapshot.until > world_.now()) {
      return &snapshot.objects;
    }
  }
  return nullptr;
}

void KubeStore::Changed(const ResourceDef& def, const Object& before, const Object& after) {
  if (listener_) listener_(def, before, after);
}

}  // namespace nomad_harvester::simulator
