// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/simulator/server.h"

#include <algorithm>
#include <chrono>
#include <httplib.h>
#include <limits>
#include <thread>
#include <utility>

#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/runtime/context.h"

namespace nomad_harvester::simulator {
namespace {

constexpr base::Duration kStep = std::chrono::milliseconds(50);
constexpr char kHost[] = "127.0.0.1";
// Each keeps a thread busy until it is closed; one more would wait for as long as a blocking query
// takes.
constexpr std::size_t kConnections = 256;

http::HttpRequest Translate(http::Method method, const httplib::Request& in) {
  http::HttpRequest request;
  request.method = method;
  request.target = in.target;
  for (const auto& [name, value] : in.headers) request.headers.Add(name, value);
  request.body = in.body;
  return request;
}

void Translate(const http::HttpResponse& in, httplib::Response& response) {
  response.status = in.status;
  std::string type;
  for (const auto& [name, value] : in.headers.fields()) {
    if (name == "Content-Type") {
      type = value;
    } else {
      response.set_header(name.c_str(), value);
    }
  }
  if (!type.empty()) response.set_content(in.body, type.c_str());
}

// Closes the connection after the header, as when a server dies during a reply.
void BreakOff(httplib::Response& response) {
  response.status = 200;
  response.set_content_provider(1 << 20, "application/json",
                                [](std::size_t, std::size_t, httplib::DataSink&) { return false; });
}

}  // namespace

struct SimulatorServer::Impl {
  // The requests that a server works on, and the most there were at a time.
  class RequestCount {
   public:
    void Begin() {
      const base::MutexLock lock(mutex_);
      most_ = std::max(most_, ++open_);
    }
    void End() {
      const base::MutexLock lock(mutex_);
      --open_;
    }
    int most() {
      const base::MutexLock lock(mutex_);
      return most_;
    }

   private:
    base::Mutex mutex_;
    int open_ NH_GUARDED_BY(mutex_) = 0;
    int most_ NH_GUARDED_BY(mutex_) = 0;
  };

  // One of the two APIs.
  class Listener {
   public:
    Listener(Cluster& cluster, System system, const runtime::Context& context)
        : cluster_(cluster), system_(system), context_(context) {
      server_.new_task_queue = [] { return new httplib::ThreadPool(kConnections); };
      server_.set_tcp_nodelay(true);
      // The library would close a connection after five requests, which neither system does.
      server_.set_keep_alive_max_count(std::numeric_limits<std::size_t>::max());
      // Replaces the library's default, SO_REUSEPORT: a second simulator would share the port.
      server_.set_socket_options([](socket_t socket) {
        const int yes = 1;
        setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
      });
      server_.Get(".*", Handler(http::Method::kGet));
      server_.Post(".*", Handler(http::Method::kPost));
      server_.Put(".*", Handler(http::Method::kPut));
      server_.Patch(".*", Handler(http::Method::kPatch));
      server_.Delete(".*", Handler(http::Method::kDelete));
    }
    ~Listener() { Stop(); }

    absl::Status Start(int port) {
      port_ = port == 0 ? server_.bind_to_any_port(kHost)
                        : (server_.bind_to_port(kHost, port) ? port : -1);
      if (port_ <= 0) {
        return base::Unavailable("the simulator cannot listen on " + std::string(kHost) + ":" +
                                 std::to_string(port));
      }
      thread_ = std::thread([this] { server_.listen_after_bind(); });
      return absl::OkStatus();
    }

    void Stop() {
      if (!thread_.joinable()) return;
      // stop() has no effect before the loop has begun.
      while (!server_.is_running()) std::this_thread::yield();
      server_.stop();
      thread_.join();
    }

    int most_requests() { return requests_.most(); }
    std::string url() const {
      return port_ <= 0 ? "" : "http://" + std::string(kHost) + ":" + std::to_string(port_);
    }

   private:
    httplib::Server::Handler Handler(http::Method method) {
      return [this, method](const httplib::Request& in, httplib::Response& response) {
        requests_.Begin();
        const auto reply = cluster_.Serve(context_, system_, Translate(method, in), kStep);
        requests_.End();
        if (reply.ok()) {
          Translate(*reply, response);
        } else {
          BreakOff(response);
        }
      };
    }

    Cluster& cluster_;
    const System system_;
    const runtime::Context context_;
    RequestCount requests_;
    httplib::Server server_;
    std::thread thread_;
    int port_ = 0;
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
