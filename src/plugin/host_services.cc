// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <utility>

#include "autoscaler_services.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"
#include "proto/plugin.grpc.pb.h"

namespace nomad_harvester::plugin {
namespace {

using ::google::protobuf::Empty;
using ::plugin::ConnInfo;
using ::plugin::StdioData;

class Controller final : public ::plugin::GRPCController::CallbackService {
 public:
  explicit Controller(std::function<void()> on_shutdown) : on_shutdown_(std::move(on_shutdown)) {}

 private:
  class Reactor final : public grpc::ServerUnaryReactor {
   public:
    explicit Reactor(const std::function<void()>& on_shutdown) : on_shutdown_(on_shutdown) {
      Finish(grpc::Status::OK);
    }
    void OnDone() override {
      on_shutdown_();
      delete this;
    }

   private:
    const std::function<void()>& on_shutdown_;
  };

  grpc::ServerUnaryReactor* Shutdown(grpc::CallbackServerContext*, const ::plugin::Empty*,
                                     ::plugin::Empty*) override {
    return new Reactor(on_shutdown_);
  }

  const std::function<void()> on_shutdown_;
};

// A stream that stays open until the client ends or cancels it, or until a shutdown ends it.
template <typename Reactor>
class OpenStream : public Reactor, public OpenRpc {
 public:
  explicit OpenStream(CallRegistry& streams) : streams_(streams) {}

  template <typename Stream>
  static Stream* Make(CallRegistry& streams) {
    const auto stream = std::make_shared<Stream>(streams);
    stream->self_ = stream;
    // Shows the client that the stream is open, because there may never be a message.
    stream->StartSendInitialMetadata();
    if (!streams.Add(stream)) stream->End(grpc::Status::OK);
    return stream.get();
  }

  void End(const grpc::Status& status) override {
    if (!ended_.exchange(true)) this->Finish(status);
  }
  void OnCancel() override { End(grpc::Status::CANCELLED); }
  void OnDone() override {
    const std::shared_ptr<OpenStream> self = std::move(self_);
    streams_.Remove(self);
  }

 private:
  CallRegistry& streams_;
  std::atomic<bool> ended_{false};
  std::shared_ptr<OpenStream> self_;  // keeps this object until gRPC is done
};

class StdioStream final : public OpenStream<grpc::ServerWriteReactor<StdioData>> {
 public:
  using OpenStream::OpenStream;
};

class BrokerStream final : public OpenStream<grpc::ServerBidiReactor<ConnInfo, ConnInfo>> {
 public:
  explicit BrokerStream(CallRegistry& streams) : OpenStream(streams) { StartRead(&ignored_); }

 private:
  void OnReadDone(bool ok) override {
    if (ok) {
      StartRead(&ignored_);
    } else {
      End(grpc::Status::OK);
    }
  }

  ConnInfo ignored_;
};

class Stdio final : public ::plugin::GRPCStdio::CallbackService {
 public:
  explicit Stdio(CallRegistry& streams) : streams_(streams) {}

 private:
  grpc::ServerWriteReactor<StdioData>* StreamStdio(grpc::CallbackServerContext*,
                                                   const Empty*) override {
    return StdioStream::Make<StdioStream>(streams_);
  }

  CallRegistry& streams_;
};

class Broker final : public ::plugin::GRPCBroker::CallbackService {
 public:
  explicit Broker(CallRegistry& streams) : streams_(streams) {}

 private:
  grpc::ServerBidiReactor<ConnInfo, ConnInfo>* StartStream(grpc::CallbackServerContext*) override {
    return BrokerStream::Make<BrokerStream>(streams_);
  }

  CallRegistry& streams_;
};

}  // namespace

std::vector<std::unique_ptr<grpc::Service>> MakeHostServices(std::function<void()> on_shutdown,
                                                             CallRegistry& streams) {
  std::vector<std::unique_ptr<grpc::Service>> services;
  services.push_back(std::make_unique<Controller>(std::move(on_shutdown)));
  services.push_back(std::make_unique<Stdio>(streams));
  services.push_back(std::make_unique<Broker>(streams));
  return services;
}

}  // namespace nomad_harvester::plugin
