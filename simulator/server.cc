// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/simulator/server.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/http/server.h"
#include "nomad_harvester/runtime/context.h"

namespace nomad_harvester::simulator {
namespace {

constexpr base::Duration kStep = std::chrono::milliseconds(50);
// One more request would wait for as long as a blocking query takes.
constexpr std::size_t kRequests = 256;
constexpr std::size_t kBody = 4 << 20;  // more than a Kubernetes API server takes

}  // namespace

struct SimulatorServer::Impl {
  // One of the two APIs.
  class Listener {
   public:
    Listener(Cluster& cluster, System system, const runtime::Context& context)
        : cluster_(cluster), system_(system), context_(context) {}

    absl::Status Start(int port) {
      const std::string address = "127.0.0.1:" + std::to_string(port);
      http::ServerOptions options;
      options.handler = [this](const http::HttpRequest& in) { return Serve(in); };
      options.threads = options.connections = kRequests;
      options.body_bytes = kBody;
      options.time_limit = std::chrono::seconds(30);
      options.keep_alive = true;
      auto server = http::Server::Listen(address, std::move(options));
      if (!server.ok()) {
        return base::Annotate(server.status(), "the simulator cannot listen on " + address);
      }
      server_ = *std::move(server);
      url_ = "http://127.0.0.1:" + std::to_string(server_->port());
      return absl::OkStatus();
    }
    void Stop() { server_.reset(); }

    int most_requests() {
      const base::MutexLock lock(mutex_);
      return most_;
    }
    std::string url() const { return url_; }

   private:
    absl::StatusOr<http::HttpResponse> Serve(const http::HttpRequest& in) {
      Count(1);
      auto reply = cluster_.Serve(context_, system_, in, kStep);
      Count(-1);
      return reply;
    }
    void Count(int change) {
      const base::MutexLock lock(mutex_);
      open_ += change;
      most_ = std::max(most_, open_);
    }

    Cluster& cluster_;
    const System system_;
    const runtime::Context context_;
    std::string url_;
    base::Mutex mutex_;
    int open_ NH_GUARDED_BY(mutex_) = 0;
    int most_ NH_GUARDED_BY(mutex_) = 0;
    std::unique_ptr<http::Server> server_;  // last member: it uses the others
  };

  Impl(Cluster& cluster, runtime::Clock& clock, int port)
      : nomad_port(port),
        cancel(runtime::Context::Background(clock)),
        harvester(cluster, System::kHarvester, cancel.context()),
        nomad(cluster, System::kNomad, cancel.context()) {}

  const int nomad_port;
  const runtime::CancelSource cancel;
  Listener harvester;
  Listener nomad;
};

SimulatorServer::SimulatorServer(Cluster& cluster, runtime::Clock& clock, int nomad_port)
    : impl_(std::make_unique<Impl>(cluster, clock, nomad_port)) {}

SimulatorServer::~SimulatorServer() { Stop(); }

absl::Status SimulatorServer::Start() {
  NH_RETURN_IF_ERROR(impl_->harvester.Start(0));
  return impl_->nomad.Start(impl_->nomad_port);
}

void SimulatorServer::Stop() {
  impl_->cancel.Cancel(runtime::CancelReason::kShutdown);
  impl_->harvester.Stop();
  impl_->nomad.Stop();
}

std::string SimulatorServer::harvester_url() const { return impl_->harvester.url(); }
std::string SimulatorServer::nomad_url() const { return impl_->nomad.url(); }

int SimulatorServer::MostRequests(System system) const {
  return (system == System::kHarvester ? impl_->harvester : impl_->nomad).most_requests();
}

}  // namespace nomad_harvester::simulator
