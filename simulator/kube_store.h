// SPDX-License-Identifier: Apache-2.0
// The objects of the simulated Kubernetes API, and the history that paginated lists need.
#ifndef NOMAD_HARVESTER_SIMULATOR_KUBE_STORE_H_
#define NOMAD_HARVESTER_SIMULATOR_KUBE_STORE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kube_types.h"
#include "nlohmann/json.hpp"
#include "world.h"

namespace nomad_harvester::simulator {

using Json = nlohmann::json;
using Object = std::shared_ptr<const Json>;

// Members of metadata; empty if missing.
std::string MetaString(const Json& object, std::string_view key);
std::string NameOf(const Json& object);
std::string NamespaceOf(const Json& object);
std::string UidOf(const Json& object);
std::string AnnotationOf(const Json& object, std::string_view key);
bool IsTerminating(const Json& object);
bool HasFinalizers(const Json& object);
// Whether an owner reference has that uid.
bool IsOwnedBy(const Json& object, std::string_view uid);

class KubeStore {
 public:
  using Key = std::pair<std::string, std::string>;  // namespace, name
  using Objects = std::map<Key, Object>;
  // `before` is null for a new object, `after` for a removed one.
  using Listener =
      std::function<void(const ResourceDef&, const Object& before, const Object& after)>;

  explicit KubeStore(World& world) : world_(world) {}
  void set_listener(Listener listener) { listener_ = std::move(listener); }

  Object Find(const ResourceDef& def, const std::string& ns, const std::string& name) const;
  // Searches all namespaces.
  Object FindByUid(const ResourceDef& def, const std::string& uid) const;
  Object FindByName(const ResourceDef& def, const std::string& name) const;
  const Objects& All(const ResourceDef& def) const;

  // Sets the server's fields of a new object: kind, apiVersion, uid, creationTimestamp, generation.
  void Stamp(const ResourceDef& def, Json& object) const;
  // Stores a stamped object.
  Object Insert(const ResourceDef& def, Json object);
  // If the object is unchanged, it keeps its resourceVersion and there is no event.
  Object Replace(const ResourceDef& def, Json object);
  void Erase(const ResourceDef& def, const std::string& ns, const std::string& name);

  std::int64_t revision() const { return revision_; }
  // Keeps the objects, the present ones, for the next pages; etcd keeps history for five minutes
  // (kubernetes/kubernetes:staging/src/k8s.io/apiserver/pkg/server/options/etcd.go,
  // DefaultCompactInterval).
  void Keep(const ResourceDef& def, const Objects& objects);
  // Null: the revision was not kept.
  const Objects* Kept(const ResourceDef& def, std::int64_t revision) const;

 private:
  struct Snapshot {
    const ResourceDef* def = nullptr;
    std::int64_t revision = 0;
    base::MonoTime until{};
    Objects objects;
  };

  void Changed(const ResourceDef& def, const Object& before, const Object& after);

  World& world_;
  Listener listener_;
  std::int64_t revision_ = 1000;
  std::map<const ResourceDef*, Objects> objects_;
  std::vector<Snapshot> kept_;
};

}  // namespace nomad_harvester::simulator

#endif  // NOMAD_HARVESTER_SIMULATOR_KUBE_STORE_H_
