// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/simulator/cluster.h"

#include <utility>

#include "cluster_impl.h"
#include "nomad_json.h"
#include "object_events.h"
#include "seed.h"

namespace nomad_harvester::simulator {
namespace {

// Interval at which a blocking query checks again.
constexpr base::Duration kStep = std::chrono::milliseconds(250);

class Adapter final : public http::HttpTransport {
 public:
  using Serve = std::function<absl::StatusOr<http::HttpResponse>(const runtime::Context&,
                                                                 const http::HttpRequest&)>;
  explicit Adapter(Serve serve) : serve_(std::move(serve)) {}
  absl::StatusOr<http::HttpResponse> Send(const runtime::Context& context,
                                          const http::HttpRequest& request) override {
    return serve_(context, request);
  }

 private:
  const Serve serve_;
};

// Observers check a deletion against what ran on the node at that moment.
void AddNode(Nomads& nomads, const std::string& node_id, Event& event) {
  const NomadState* nomad = nomads.WithNode(node_id);
  if (nomad == nullptr) return;
  event.node = std::make_shared<const Json>(NodeJson(*nomad->LookUp(node_id)));
  for (const auto& [id, allocation] : nomad->allocations()) {
    if (allocation.node_id != node_id) continue;
    event.allocations.push_back(std::make_shared<const Json>(AllocationJson(allocation)));
  }
}

}  // namespace

Cluster::Impl::Impl(runtime::Clock& clock, runtime::Random& random, Options options)
    : world(clock, random, std::move(options)),
      store(world),
      nomads(world),
      machines(world, store, nomads),
      kube_api(world, store) {
  Seed(store, world.options);
  store.set_listener([this](const ResourceDef& def, const Object& before, const Object& after)
                         NH_REQUIRES(mutex) { OnChange(def, before, after); });
}

void Cluster::Impl::OnChange(const ResourceDef& def, const Object& before, const Object& after) {
  for (Event& event : EventsOf(def, before, after)) {
    if (event.kind == EventKind::kVmDeleteRequested) {
      AddNode(nomads, machines.NodeOf(event.id), event);
    }
    world.Emit(std::move(event));
  }
  machines.OnChange(def, before, after);
}

void Cluster::Impl::ApplyDue() {
  while (true) {
    std::vector<Event> events;
    {
      base::MutexLock lock(mutex);
      if (observing.count(std::this_thread::get_id()) != 0) return;
      if (!world.RunDue(world.clock.Now())) return;
      events = world.TakeEvents();
    }
    Deliver(events);
  }
}

void Cluster::Impl::Act(Actor actor, const std::function<void()>& fn) {
  ApplyDue();
  std::vector<Event> events;
  {
    base::MutexLock lock(mutex);
    world.BeginStep(world.clock.Now(), actor);
    fn();
    events = world.TakeEvents();
  }
  Deliver(events);
}

void Cluster::Impl::Deliver(const std::vector<Event>& events) {
  if (events.empty()) return;
  std::function<void(const Event&)> notify;
  {
    base::MutexLock lock(mutex);
    if (!observer) return;
    notify = observer;
    observing.insert(std::this_thread::get_id());
  }
  struct Leaver {
    Impl& impl;
    ~Leaver() {
      base::MutexLock lock(impl.mutex);
      impl.observing.erase(std::this_thread::get_id());
    }
  } leaver{*this};
  for (const Event& event : events) notify(event);
}

Cluster::Cluster(runtime::Clock& clock, runtime::Random& random, Options options)
    : impl_(std::make_shared<Impl>(clock, random, std::move(options))) {}

Cluster::~Cluster() = default;

std::shared_ptr<http::HttpTransport> Cluster::HarvesterTransport(const std::string& client) {
  return std::make_shared<Adapter>(
      [impl = impl_, caller = Impl::Caller{System::kHarvester, client}](
          const runtime::Context& context, const http::HttpRequest& request) {
        return impl->Serve(context, caller, request, kStep);
      });
}

std::shared_ptr<http::HttpTransport> Cluster::NomadTransport(const std::string& client,
                                                             const std::string& nomad) {
  return std::make_shared<Adapter>(
      [impl = impl_, caller = Impl::Caller{System::kNomad, client, nomad}](
          const runtime::Context& context, const http::HttpRequest& request) {
        return impl->Serve(context, caller, request, kStep);
      });
}

http::RawTransports Cluster::Transports(const std::string& client, const std::string& nomad) {
  return {.harvester = HarvesterTransport(client), .nomad = NomadTransport(client, nomad)};
}

absl::StatusOr<http::HttpResponse> Cluster::Serve(const runtime::Context& context, System system,
                                                  const http::HttpRequest& request,
                                                  base::Duration step) {
  return impl_->Serve(context, {.system = system, .client = ""}, request, step);
}

void Cluster::ApplyDue() { impl_->ApplyDue(); }

}  // namespace nomad_harvester::simulator
