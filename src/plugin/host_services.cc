// SPDX-License-Identifier: Apache-2.0
#include "host_services.h"

#include <memory>

namespace nomad_harvester::plugin {
namespace {

class ShutdownReactor final : public grpc::ServerUnaryReactor {
 public:
  explicit ShutdownReactor(const std::function<void()>& on_shutdown) : on_shutdown_(on_shutdown) {
    Finish(grpc::Status::OK);
  }
  // Called after the reply has been sent, so that what follows may close the connection.
  void OnDone() override {
    on_shutdown_();
    delete this;
  }

 private:
  const std::function<void()>& on_shutdown_;
};

// A stream's entry in the registry. The reactor may be finished only once, and not after OnDone.
template <typename Reactor>
class OpenStream final : public OpenRpc {
 public:
  explicit OpenStream(Reactor& reactor) : reactor_(&reactor) {}

  void End(const grpc::Status&) override { Finish(); }
  // A stream that the plugin ends gets OK, whatever status other calls get.
  void Finish() {
    if (Reactor* const reactor = reactor_.exchange(nullptr)) reactor->Finish(grpc::Status::OK);
  }

 private:
  std::atomic<Reactor*> reactor_;
};

// Open until the host or a shutdown ends it.
template <typename Base>
class HeldStream : public Base {
 public:
  explicit HeldStream(CallRegistry& registry)
      : stream_(std::make_shared<OpenStream<Base>>(*this)), registry_(registry) {
    // So that the client sees immediately that the stream is open.
    this->StartSendInitialMetadata();
    added_ = registry_.Add(stream_);
    if (!added_) stream_->Finish();
  }

  void OnCancel() override { stream_->Finish(); }
  void OnDone() override {
    registry_.Remove(stream_);
    delete this;
  }

 protected:
  const std::shared_ptr<OpenStream<Base>> stream_;
  bool added_ = false;

 private:
  CallRegistry& registry_;
};

using StdioReactor = HeldStream<grpc::ServerWriteReactor<host_proto::StdioData>>;

class BrokerReactor final
    : public HeldStream<grpc::ServerBidiReactor<host_proto::ConnInfo, host_proto::ConnInfo>> {
 public:
  explicit BrokerReactor(CallRegistry& registry) : HeldStream(registry) {
    if (added_) StartRead(&ignored_);
  }

  void OnReadDone(bool ok) override {
    if (ok) {
      StartRead(&ignored_);
    } else {
      stream_->Finish();
    }
  }

 private:
  host_proto::ConnInfo ignored_;
};

}  // namespace

grpc::ServerUnaryReactor* ControllerService::Shutdown(grpc::CallbackServerContext*,
                                                      const host_proto::Empty*,
                                                      host_proto::Empty*) {
  return new ShutdownReactor(on_shutdown_);
}

grpc::ServerWriteReactor<host_proto::StdioData>* StdioService::StreamStdio(
    grpc::CallbackServerContext*, const google::protobuf::Empty*) {
  return new StdioReactor(registry_);
}

grpc::ServerBidiReactor<host_proto::ConnInfo, host_proto::ConnInfo>* BrokerService::StartStream(
    grpc::CallbackServerContext*) {
  return new BrokerReactor(registry_);
}

}  // namespace nomad_harvester::plugin
