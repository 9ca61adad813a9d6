#include "lease_api.h"

#include <utility>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/harvester/metadata.h"
#include "nomad_harvester/kube/object.h"

namespace nomad_harvester::scaling {
namespace {

using http::Method;

constexpr char kLeases[] = "/apis/coordination.k8s.io/v1/namespaces/default/leases";

std::string WebLease() { return std::string(kLeases) + "/" + harvester::LeaseName("web"); }

}  // namespace

LeaseApi::LeaseApi(const support::FakeClock& clock) : clock_(clock), start_(clock.Now()) {}

base::WallTime LeaseApi::Now() const {
  base::MutexLock lock(mutex_);
  return base::ParseRfc3339("2026-01-01T00:00:00Z").value() + (clock_.Now() - start_) + skew_;
}

void LeaseApi::set_clock_skew(base::Duration skew) {
  base::MutexLock lock(mutex_);
  skew_ = skew;
}

void LeaseApi::Answer(Method method, int status) {
  base::MutexLock lock(mutex_);
  behaviour_[method].status = status;
}

void LeaseApi::Lose(Method method, Fault fault, std::size_t count) {
  base::MutexLock lock(mutex_);
  behaviour_[method].faults.assign(count, fault);
}

void LeaseApi::Delay(Method method, base::Duration latency) {
  base::MutexLock lock(mutex_);
  behaviour_[method].latency = latency;
}

void LeaseApi::Before(Method method, std::function<void()> others) {
  base::MutexLock lock(mutex_);
  behaviour_[method].others = std::move(others);
}

absl::StatusOr<http::HttpResponse> LeaseApi::Send(const runtime::Context& context,
                                                  const http::HttpRequest& request) {
  NH_RETURN_IF_ERROR(context.Check());
  base::Duration latency{};
  std::function<void()> others;
  std::optional<Fault> fault;
  {
    base::MutexLock lock(mutex_);
    requests_.push_back({.method = request.method,
                         .body = request.body.empty() ? Json() : Json::parse(request.body)});
    Behaviour& behaviour = behaviour_[request.method];
    latency = behaviour.latency;
    others = std::exchange(behaviour.others, nullptr);
    if (!behaviour.faults.empty()) {
      fault = behaviour.faults.back();
      behaviour.faults.pop_back();
    }
  }
  if (latency > base::Duration::zero()) NH_RETURN_IF_ERROR(context.Sleep(latency));
  if (others) others();
  if (fault == Fault::kLostBefore) return base::Unavailable("the connection broke");
  http::HttpResponse response;
  {
    base::MutexLock lock(mutex_);
    const int status = behaviour_[request.method].status;
    response = status != 0 ? Refuse(status, "") : Handle(request);
  }
  if (fault == Fault::kLostAfter) return base::Unavailable("the connection broke");
  response.headers.Set("Date", base::FormatHttpDate(Now()));
  return response;
}

http::HttpResponse LeaseApi::Reply(int status, const Json& body) const {
  http::HttpResponse response;
  response.status = status;
  response.body = body.dump();
  return response;
}

http::HttpResponse LeaseApi::Refuse(int status, const std::string& reason) const {
  return Reply(status, {{"kind", "Status"}, {"reason", reason}, {"code", status}});
}

void LeaseApi::Touch(Json& object) {
  object["metadata"]["resourceVersion"] = std::to_string(++version_);
}

http::HttpResponse LeaseApi::Handle(const http::HttpRequest& request) {
  const std::string path = request.target.substr(0, request.target.find('?'));
  if (request.method == Method::kPost) {
    Json object = Json::parse(request.body);
    const std::string key = path + "/" + kube::NameOf(object);
    if (objects_.contains(key)) return Refuse(409, "AlreadyExists");
    Touch(object);
    objects_[key] = object;
    return Reply(201, object);
  }
  const auto found = objects_.find(path);
  if (found == objects_.end()) return Refuse(404, "NotFound");
  if (request.method == Method::kPatch) {
    const Json patch = Json::parse(request.body);
    const std::string wanted = kube::ResourceVersionOf(patch);
    if (!wanted.empty() && wanted != kube::ResourceVersionOf(found->second)) {
      return Refuse(409, "Conflict");
    }
    found->second.merge_patch(patch);
    Touch(found->second);
  }
  return Reply(200, found->second);
}

void LeaseApi::Change(const std::function<void(Json&)>& change) {
  base::MutexLock lock(mutex_);
  Json& object = objects_[WebLease()];
  object["metadata"]["name"] = harvester::LeaseName("web");
  object["metadata"]["namespace"] = "default";
  change(object);
  Touch(object);
}

void LeaseApi::Hold(const std::string& holder, base::WallTime renewed) {
  Change([&](Json& object) {
    object["spec"]["holderIdentity"] = holder;
    object["spec"]["renewTime"] = base::FormatRfc3339Micros(renewed);
  });
}

void LeaseApi::Annotate(const std::string& key, const std::string& value) {
  Change([&](Json& object) { object["metadata"]["annotations"][key] = value; });
}

void LeaseApi::Remove() {
  base::MutexLock lock(mutex_);
  objects_.clear();
}

std::optional<LeaseApi::Json> LeaseApi::Object() const {
  base::MutexLock lock(mutex_);
  const auto found = objects_.find(WebLease());
  if (found == objects_.end()) return std::nullopt;
  return found->second;
}

kube::Lease LeaseApi::Lease() const {
  return kube::ParseLease({.object = Object().value_or(Json::object()), .server_time = Now()});
}

std::vector<LeaseApi::Request> LeaseApi::requests() const {
  base::MutexLock lock(mutex_);
  return requests_;
}

std::size_t LeaseApi::Count(Method method) const {
  std::size_t count = 0;
  for (const Request& request : requests()) count += request.method == method ? 1 : 0;
  return count;
}

void LeaseApi::ForgetRequests() {
  base::MutexLock lock(mutex_);
  requests_.clear();
}

}  // namespace nomad_harvester::scaling
