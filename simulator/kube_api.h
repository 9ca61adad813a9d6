// SPDX-License-Identifier: Apache-2.0
// The simulated Kubernetes API of Harvester: one request, one reply. Controllers: machines.h.
#ifndef NOMAD_HARVESTER_SIMULATOR_KUBE_API_H_
#define NOMAD_HARVESTER_SIMULATOR_KUBE_API_H_

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "nomad_harvester/http/message.h"

#include "kube_store.h"
#include "target.h"
#include "world.h"

namespace nomad_harvester::simulator {

// A parsed request.
struct KubeCall {
  Target target;
  const ResourceDef* def = nullptr;  // null: not the path of a resource
  std::string ns;
  std::string name;  // empty: the collection
  std::string verb;  // as in RBAC
  bool dry_run = false;
  std::string review;  // "selfsubjectaccessreviews", "selfsubjectrulesreviews"
};
KubeCall ParseKubeCall(const http::HttpRequest& request);

class KubeApi {
 public:
  KubeApi(World& world, KubeStore& store) : world_(world), store_(store) {}

  http::HttpResponse Handle(const http::HttpRequest& request);
  // A DELETE without preconditions, as operators send it.
  void DeleteByHand(const ResourceDef& def, const std::string& ns, const std::string& name);

  // Verb and plural; an empty plural means all resources.
  std::set<std::pair<std::string, std::string>> forbidden;
  std::set<std::pair<std::string, std::string>> forbidden_cluster_wide;  // allowed in a namespace
  std::optional<std::string> quota_exceeded;
  bool rules_incomplete = false;

 private:
  // An empty namespace: all of them, or the resource has none.
  bool IsForbidden(const std::string& verb, const std::string& resource,
                   const std::string& ns) const;
  http::HttpResponse Dispatch(const KubeCall& call, const http::HttpRequest& request);

  // kube_review.cc
  http::HttpResponse Review(const KubeCall& call, const http::HttpRequest& request) const;
  Json AccessRules(const std::string& ns) const;

  // kube_read.cc
  http::HttpResponse Get(const KubeCall& call);
  http::HttpResponse List(const KubeCall& call, bool metadata_only);
  // The stored objects. Made here: the pods of instances that have a host, and the core group's
  // view of the other group's Events.
  const KubeStore::Objects& Objects(const ResourceDef& def);
  // Of an object, as an element of a list.
  struct ItemTexts {
    Object object;
    std::string whole;
    std::string metadata_only;
  };
  const std::string& ItemText(const ResourceDef& def, const KubeStore::Key& key,
                              const Object& object, bool metadata_only);

  // kube_write.cc
  http::HttpResponse Create(const KubeCall& call, const http::HttpRequest& request);
  http::HttpResponse Patch(const KubeCall& call, const http::HttpRequest& request);
  http::HttpResponse Put(const KubeCall& call, const http::HttpRequest& request);
  http::HttpResponse Update(const KubeCall& call, const Object& current, Json wanted, bool patch);
  std::optional<http::HttpResponse> CheckChange(const KubeCall& call, const Json& current,
                                                const Json& wanted) const;
  // The refusal of an object that is not valid, if any.
  std::optional<http::HttpResponse> Validate(const ResourceDef& def, const std::string& name,
                                             const Json& object) const;
  // kube_delete.cc
  http::HttpResponse Delete(const KubeCall& call, const http::HttpRequest& request);
  Json MarkDeleted(const ResourceDef& def, Json object, bool foreground) const;
  // kube_admission.cc: the denial of Harvester's webhooks, if any. The first one comes before all
  // validation.
  std::optional<http::HttpResponse> FindWrongType(const Json& vm) const;
  std::optional<http::HttpResponse> AdmitVm(const Json& vm, bool is_new) const;
  std::optional<http::HttpResponse> FindMissingNetwork(const Json& vm) const;
  std::optional<http::HttpResponse> CheckVmSpec(const Json& vm) const;
  bool AboutToStart(const Json& vm) const;
  std::optional<http::HttpResponse> AdmitClaimDeletion(const Json& claim) const;

  World& world_;
  KubeStore& store_;
  // Of the objects that were listed last: a list is asked for more often than its objects change.
  std::map<std::pair<const ResourceDef*, KubeStore::Key>, ItemTexts> texts_;
  KubeStore::Objects pods_;
  KubeStore::Objects events_;
  std::map<KubeStore::Key, std::pair<Object, Object>> launcher_pods_;  // with their instances
};

// kube_discovery.cc: the answer to a GET of what kubectl asks first; nullopt: the path is another.
std::optional<http::HttpResponse> Discover(const Target& target);

// The claims that the volumes of a VM or an instance refer to.
std::set<std::string> ClaimsOf(const Json& object);

}  // namespace nomad_harvester::simulator

#endif  // NOMAD_HARVESTER_SIMULATOR_KUBE_API_H_
