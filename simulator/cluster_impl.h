// SPDX-License-Identifier: Apache-2.0
// The implementation of Cluster: its parts, and the one mutex that guards them.
#ifndef NOMAD_HARVESTER_SIMULATOR_CLUSTER_IMPL_H_
#define NOMAD_HARVESTER_SIMULATOR_CLUSTER_IMPL_H_

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/simulator/cluster.h"

#include "kube_api.h"
#include "kube_store.h"
#include "machines.h"
#include "nomads.h"
#include "refusals.h"
#include "world.h"

namespace nomad_harvester::simulator {

struct Cluster::Impl : std::enable_shared_from_this<Cluster::Impl> {
  Impl(runtime::Clock& clock, runtime::Random& random, Options options);

  struct Caller {
    System system = System::kHarvester;
    std::string client;
    std::string nomad{};  // which of the Nomad clusters
  };

  mutable base::Mutex mutex;
  World world NH_GUARDED_BY(mutex);
  KubeStore store NH_GUARDED_BY(mutex);
  Nomads nomads NH_GUARDED_BY(mutex);
  Machines machines NH_GUARDED_BY(mutex);
  KubeApi kube_api NH_GUARDED_BY(mutex);
  Refusals refusals NH_GUARDED_BY(mutex);

  std::function<Fault(const RequestInfo&)> fault_hook NH_GUARDED_BY(mutex);
  std::function<void(const Event&)> observer NH_GUARDED_BY(mutex);
  std::set<std::thread::id> observing NH_GUARDED_BY(mutex);  // threads inside an observer
  std::map<std::string, int> counts NH_GUARDED_BY(mutex);
  int requests NH_GUARDED_BY(mutex) = 0;
  int effects NH_GUARDED_BY(mutex) = 0;
  std::set<std::string> dead NH_GUARDED_BY(mutex);  // clients
  bool reachable[2] NH_GUARDED_BY(mutex) = {true, true};
  std::vector<base::Duration> clock_skews NH_GUARDED_BY(mutex);  // of the API servers
  std::size_t next_server NH_GUARDED_BY(mutex) = 0;

  // Applies what is due, step by step. A no-op inside an observer.
  void ApplyDue();
  // Applies what is due, then runs fn as a step of that actor, under the lock.
  void Act(Actor actor, const std::function<void()>& fn);
  // Called for every change of an object of the store.
  void OnChange(const ResourceDef& def, const Object& before, const Object& after)
      NH_REQUIRES(mutex);
  // Calls the observer, without the lock.
  void Deliver(const std::vector<Event>& events);

  // requests.cc
  RequestInfo Count(const Caller& caller, const http::HttpRequest& request) NH_REQUIRES(mutex);
  absl::Status CheckLine(const Caller& caller) const;
  std::uint64_t NomadIndex(const Caller& caller);
  // The clock skew of the API server that handles the next request.
  base::Duration NextSkew(System system) NH_REQUIRES(mutex);
  NomadReply Answer(const Caller& caller, const http::HttpRequest& request) NH_REQUIRES(mutex);
  NomadReply Apply(const Caller& caller, const http::HttpRequest& request);
  absl::StatusOr<http::HttpResponse> ApplyAndWait(const runtime::Context& context,
                                                  const Caller& caller,
                                                  const http::HttpRequest& request,
                                                  base::Duration step);
  absl::StatusOr<http::HttpResponse> Serve(const runtime::Context& context, const Caller& caller,
                                           const http::HttpRequest& request, base::Duration step);
  absl::StatusOr<http::HttpResponse> ServeLate(const runtime::Context& context,
                                               const Caller& caller,
                                               const http::HttpRequest& request,
                                               base::Duration delay, base::Duration step);

  // operators.cc: runs fn if the VM or node exists.
  bool WithVm(const std::string& name, const std::function<void(const Object&)>& fn);
  bool WithNode(const std::string& name,
                const std::function<void(NomadState&, const std::string&)>& fn);

  std::vector<nlohmann::json> Copies(const ResourceDef& def);
};

}  // namespace nomad_harvester::simulator

#endif  // NOMAD_HARVESTER_SIMULATOR_CLUSTER_IMPL_H_
