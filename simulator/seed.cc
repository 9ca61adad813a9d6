// SPDX-License-Identifier: Apache-2.0
#include "seed.h"

#include <utility>

#include "nomad_harvester/base/json.h"

#include "machines.h"

namespace nomad_harvester::simulator {
namespace {

constexpr char kHarvesterVersion[] = "v1.8.2";

std::pair<std::string, std::string> Split(const std::string& full) {
  const std::size_t slash = full.find('/');
  if (slash == std::string::npos) return {"default", full};
  return {full.substr(0, slash), full.substr(slash + 1)};
}

void Put(KubeStore& store, const ResourceDef& def, const std::string& ns, const std::string& name,
         Json object) {
  object["metadata"]["name"] = name;
  if (!ns.empty()) object["metadata"]["namespace"] = ns;
  store.Stamp(def, object);
  store.Insert(def, std::move(object));
}

void PutImage(KubeStore& store, const ImageSpec& image) {
  Json object = {
      {"metadata", {{"labels", {{"harvesterhci.io/imageDisplayName", image.display_name}}}}},
      {"spec",
       {{"displayName", image.display_name},
        {"sourceType", "download"},
        {"backend", image.backend}}},
      {"status",
       {{"storageClassName", image.storage_class},
        {"progress", 100},
        {"size", image.virtual_size},
        {"virtualSize", image.virtual_size}}}};
  Put(store, kImages, image.ns, image.name, WithImageReady(object, true, base::WallTime{}));
}

}  // namespace

Json WithImageReady(const Json& image, bool ready, base::WallTime now) {
  Json changed = image;
  changed["status"]["progress"] = ready ? 100 : 40;
  SetCondition(changed, "Initialized", "True", "", "", now);
  SetCondition(changed, "Imported", ready ? "True" : "Unknown", ready ? "Imported" : "Importing",
               "", now);
  return changed;
}

Object FindImage(const KubeStore& store, const std::string& image) {
  const auto [ns, name] = Split(image);
  if (Object found = store.Find(kImages, ns, name)) return found;
  for (const auto& [key, object] : store.All(kImages)) {
    const Json* display = base::FindPath(*object, {"spec", "displayName"});
    if (key.first == ns && display != nullptr && *display == name) return object;
  }
  return nullptr;
}

void Seed(KubeStore& store, const Options& options) {
  for (const char* ns : {"default", "nomad", "harvester-public"}) {
    Put(store, kNamespaces, "", ns, {{"status", {{"phase", "Active"}}}});
  }
  for (const ImageSpec& image : options.images) {
    PutImage(store, image);
    Put(store, kStorageClasses, "", image.storage_class, {{"provisioner", "driver.longhorn.io"}});
  }
  Put(store, kStorageClasses, "", "harvester-longhorn", {{"provisioner", "driver.longhorn.io"}});
  for (const char* name : {"system-cluster-critical", "system-node-critical"}) {
    Put(store, kPriorityClasses, "", name, {{"value", 2000000000}});
  }
  for (const HostSpec& host : options.hosts) {
    Json object = {{"metadata", {{"labels", {{"kubernetes.io/hostname", host.name}}}}}};
    if (!host.zone.empty()) object["metadata"]["labels"]["topology.kubernetes.io/zone"] = host.zone;
    if (!host.cpu.empty()) object["status"]["allocatable"]["cpu"] = host.cpu;
    if (!host.memory.empty()) object["status"]["allocatable"]["memory"] = host.memory;
    for (const auto& [key, value] : host.labels) object["metadata"]["labels"][key] = value;
    for (const auto& [resource, count] : host.devices) {
      object["status"]["allocatable"][resource] = std::to_string(count);
    }
    Put(store, kHosts, "", host.name, std::move(object));
  }
  // Value and default are members of the object itself.
  Put(store, kSettings, "", "server-version", {{"value", kHarvesterVersion}, {"default", "dev"}});
  for (const std::string& network : options.networks) {
    const auto [ns, name] = Split(network);
    Put(store, kNetworks, ns, name,
        {{"metadata", {{"labels", {{"network.harvesterhci.io/clusternetwork", "mgmt"}}}}},
         {"spec", {{"config", "{}"}}}});
  }
}

}  // namespace nomad_harvester::simulator
