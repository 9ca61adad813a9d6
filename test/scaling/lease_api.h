// The slice of an API server that a pool's Lease needs, in memory, with the faults of a network.
#ifndef NOMAD_HARVESTER_TEST_SCALING_LEASE_API_H_
#define NOMAD_HARVESTER_TEST_SCALING_LEASE_API_H_

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/http/transport.h"
#include "nomad_harvester/kube/lease.h"

#include "nlohmann/json.hpp"
#include "support/fake_clock.h"

namespace nomad_harvester::scaling {

// GET, POST and PATCH (JSON merge patch) of objects by path. Every write gives a new
// resourceVersion; a PATCH that names another one than the object's is refused with 409 Conflict,
// a POST of an object that exists with 409 AlreadyExists
// (kubernetes/kubernetes:staging/src/k8s.io/apiserver/pkg/registry/generic/registry/store.go).
class LeaseApi final : public http::HttpTransport {
 public:
  using Json = nlohmann::json;
  struct Request {
    http::Method method = http::Method::kGet;
    Json body;
  };
  enum class Fault { kLostBefore, kLostAfter };  // no reply; it took no effect, or it did

  explicit LeaseApi(const support::FakeClock& clock);

  absl::StatusOr<http::HttpResponse> Send(const runtime::Context& context,
                                          const http::HttpRequest& request) override;

  // The server's own clock: it moves with the FakeClock, but ignores its wall_skew.
  base::WallTime Now() const;
  void set_clock_skew(base::Duration skew);

  // Answers every request of that method with this status until it is 0.
  void Answer(http::Method method, int status);
  // The next `count` requests of that method.
  void Lose(http::Method method, Fault fault, std::size_t count = 1);
  // Every request of that method takes so long on its way to the server.
  void Delay(http::Method method, base::Duration latency);
  // Called once, when a request of that method has arrived and before it is looked at: what others
  // do in that moment.
  void Before(http::Method method, std::function<void()> others);

  // What other processes do, by hand.
  void Hold(const std::string& holder, base::WallTime renewed);
  void Annotate(const std::string& key, const std::string& value);
  void Remove();

  // The Lease of pool default/web; nothing if there is none.
  std::optional<Json> Object() const;
  kube::Lease Lease() const;
  std::vector<Request> requests() const;
  std::size_t Count(http::Method method) const;
  void ForgetRequests();

 private:
  struct Behaviour {
    int status = 0;
    std::vector<Fault> faults;
    base::Duration latency{};
    std::function<void()> others;
  };
  http::HttpResponse Handle(const http::HttpRequest& request) NH_REQUIRES(mutex_);
  http::HttpResponse Reply(int status, const Json& body) const;
  http::HttpResponse Refuse(int status, const std::string& reason) const;
  void Touch(Json& object) NH_REQUIRES(mutex_);
  void Change(const std::function<void(Json&)>& change);

  const support::FakeClock& clock_;
  const base::MonoTime start_;
  mutable base::Mutex mutex_;
  base::Duration skew_ NH_GUARDED_BY(mutex_){};
  int version_ NH_GUARDED_BY(mutex_) = 40;
  std::map<std::string, Json> objects_ NH_GUARDED_BY(mutex_);  // by path
  std::map<http::Method, Behaviour> behaviour_ NH_GUARDED_BY(mutex_);
  std::vector<Request> requests_ NH_GUARDED_BY(mutex_);
};

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_TEST_SCALING_LEASE_API_H_
