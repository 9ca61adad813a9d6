// A Kubernetes API server in memory, as far as VmStore can tell: objects with uid and
// resourceVersion, selectors, pages, preconditions, dry runs, and faults on demand.
#ifndef NOMAD_HARVESTER_TEST_HARVESTER_FAKE_API_H_
#define NOMAD_HARVESTER_TEST_HARVESTER_FAKE_API_H_

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "nomad_harvester/http/transport.h"
#include "nomad_harvester/kube/resource_type.h"

#include "nlohmann/json.hpp"

namespace nomad_harvester::harvester {

// For one thread.
class FakeApi final : public http::HttpTransport {
 public:
  struct Call {
    http::Method method;
    std::string path;
    std::map<std::string, std::string> query;
    nlohmann::json body;
    http::Effect effect;
  };

  absl::StatusOr<http::HttpResponse> Send(const runtime::Context& context,
                                          const http::HttpRequest& request) override;

  // Stores an object as if it had been there: uid, resourceVersion and creationTimestamp are filled
  // in where they are missing.
  void Put(const kube::ResourceType& type, const std::string& ns, nlohmann::json object);
  // Null if there is none.
  nlohmann::json* Find(const kube::ResourceType& type, const std::string& ns,
                       const std::string& name);
  // What any writer does: a new resourceVersion.
  void Touch(nlohmann::json& object);
  void Remove(const kube::ResourceType& type, const std::string& ns, const std::string& name);

  const std::vector<Call>& calls() const { return calls_; }
  std::vector<Call> CallsOf(http::Method method) const;

  // The next request of that method takes effect, but nobody hears of it.
  void LoseReplyOf(http::Method method) { lose_reply_of_ = method; }
  // The next request of that method is answered so, without effect.
  void Answer(http::Method method, int status, const std::string& reason,
              const std::string& message);
  // Called before each request is handled: somebody else was faster.
  std::function<void(const Call&)> before;

  static constexpr char kDate[] = "Sat, 21 Nov 2026 02:03:04 GMT";

 private:
  using Objects = std::map<std::string, nlohmann::json>;

  http::HttpResponse Handle(const Call& call);
  http::HttpResponse List(const Call& call, const Objects& objects) const;
  http::HttpResponse Create(const Call& call, Objects& objects);
  http::HttpResponse Patch(const Call& call, nlohmann::json& object);
  http::HttpResponse Delete(const Call& call, Objects& objects, const std::string& name);
  nlohmann::json Complete(nlohmann::json object);

  std::map<std::string, Objects> collections_;  // by path
  std::vector<Call> calls_;
  std::optional<http::Method> lose_reply_of_;
  std::map<http::Method, http::HttpResponse> answers_;
  int last_version_ = 5000;
  int last_uid_ = 0;
};

}  // namespace nomad_harvester::harvester

#endif  // NOMAD_HARVESTER_TEST_HARVESTER_FAKE_API_H_
