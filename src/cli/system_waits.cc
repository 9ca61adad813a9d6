// SPDX-License-Identifier: Apache-2.0
#include "system_waits.h"

#include <algorithm>
#include <iterator>
#include <list>
#include <map>
#include <ostream>
#include <string>
#include <utility>

#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/http/base_url.h"
#include "nomad_harvester/http/decorators.h"
#include "nomad_harvester/http/retry.h"
#include "nomad_harvester/kube/connection.h"
#include "nomad_harvester/nomad/connection.h"

#include "text.h"

namespace nomad_harvester::cli {
namespace {

std::string AddressOf(const std::string& base_url) {
  const auto url = http::ParseBaseUrl(base_url);
  return url.ok() ? url->Url() : "an unknown address";
}

}  // namespace

// What the command waits for; says it once.
struct SystemWaits::State {
  using Place = std::list<std::string>::iterator;

  State(std::function<bool()> printed, std::ostream& stream)
      : has_printed(std::move(printed)), err(stream) {}

  // Call when a request begins; End takes the result.
  Place Begin(const std::string& what) {
    Place place;
    {
      const base::MutexLock lock(mutex);
      asked.push_back(what);
      place = std::prev(asked.end());
    }
    TellIfDue();
    return place;
  }
  void End(Place place) {
    const base::MutexLock lock(mutex);
    asked.erase(place);
  }
  void BecomeDue() {
    {
      const base::MutexLock lock(mutex);
      is_due = true;
    }
    TellIfDue();
  }
  void TellIfDue() {
    std::string line;
    {
      const base::MutexLock lock(mutex);
      if (!is_due || told || asked.empty()) return;
      told = true;
      line = Printable("waits for " + asked.front()) + "\n";
    }
    if (!has_printed()) err << line << std::flush;
  }

  const std::function<bool()> has_printed;
  std::ostream& err;
  base::Mutex mutex;
  std::list<std::string> asked NH_GUARDED_BY(mutex);  // the requests in flight, the oldest first
  bool is_due NH_GUARDED_BY(mutex) = false;
  bool told NH_GUARDED_BY(mutex) = false;
  std::map<std::string, std::shared_ptr<System>> systems NH_GUARDED_BY(mutex);  // by address
};

// How long one system has been silent. The time counts while at least one request waits.
class SystemWaits::System {
 public:
  System(std::string name, std::string key, std::string address)
      : name_(std::move(name)), key_(std::move(key)), address_(std::move(address)) {}

  // "Nomad at http://10.0.0.5:4646: list nodes".
  std::string Asked(const std::string& purpose) const {
    return name_ + " at " + address_ + ": " + purpose;
  }

  // Returns until when a request that begins now may wait, or the error of a system given up.
  absl::StatusOr<base::MonoTime> Begin(base::MonoTime now, const std::string& purpose) {
    const base::MutexLock lock(mutex_);
    if (in_flight_ == 0 && now - ended_at_ >= kAskAgainAfter) silent_for_ = base::Duration::zero();
    const base::Duration silent = SilentFor(now);
    if (silent >= kAnswerLimit) return GivenUp(first_asked_, "");
    if (in_flight_++ == 0) waiting_since_ = now;
    if (silent == base::Duration::zero()) first_asked_ = purpose;
    return now + (kAnswerLimit - silent);
  }
  void Replied(base::MonoTime now, base::Duration waited) {
    const base::MutexLock lock(mutex_);
    slowest_reply_ = std::max(slowest_reply_, waited);
    silent_for_ = base::Duration::zero();
    End(now);
  }
  // A request that ends before replies usually come says nothing about a slow system.
  void EndedWithoutReply(base::MonoTime now, base::Duration waited, base::Duration limit) {
    const base::MutexLock lock(mutex_);
    if (waited < std::min(slowest_reply_, limit)) {
      ended_at_ = now;
      --in_flight_;
      return;
    }
    silent_for_ = SilentFor(now);
    End(now);
  }
  // The next request has the whole limit.
  void Forget() {
    const base::MutexLock lock(mutex_);
    silent_for_ = base::Duration::zero();
  }
  // Adds to the error of a request without a reply where the address comes from.
  absl::Status WithCure(const absl::Status& failed) const {
    return base::Unavailable(base::Message(failed) + "; check " + key_ + ", and that " + name_ +
                             " runs");
  }
  // The error of a request that has waited until then.
  absl::Status GivenUp(const http::HttpRequest& request) const {
    const bool writes = request.effect == http::Effect::kWrite;
    return GivenUp(request.purpose, writes ? "; whether it was done is not known" : "");
  }

 private:
  void End(base::MonoTime now) NH_REQUIRES(mutex_) {
    waiting_since_ = now;
    ended_at_ = now;
    --in_flight_;
  }
  base::Duration SilentFor(base::MonoTime now) const NH_REQUIRES(mutex_) {
    return silent_for_ + (in_flight_ == 0 ? base::Duration::zero() : now - waiting_since_);
  }
  absl::Status GivenUp(const std::string& asked, const std::string& outcome) const {
    absl::Status status = base::Unavailable(
        name_ + " at " + address_ + " gave no reply within " +
        base::FormatGoDuration(kAnswerLimit) + " to: " + asked + outcome + "; check " + key_ +
        ", that " + name_ + " runs, and that no firewall or proxy on the way drops packets");
    http::MarkFinal(&status);
    return status;
  }

  const std::string name_;
  const std::string key_;  // of the address
  const std::string address_;
  base::Mutex mutex_;
  int in_flight_ NH_GUARDED_BY(mutex_) = 0;
  base::MonoTime waiting_since_ NH_GUARDED_BY(mutex_){};
  base::MonoTime ended_at_ NH_GUARDED_BY(mutex_){};
  base::Duration silent_for_ NH_GUARDED_BY(mutex_){};  // before `waiting_since_`
  base::Duration slowest_reply_ NH_GUARDED_BY(mutex_){};
  std::string first_asked_ NH_GUARDED_BY(mutex_);  // since the last reply
};

class SystemWaits::LimitedTransport final : public http::HttpTransport {
 public:
  LimitedTransport(std::shared_ptr<http::HttpTransport> inner, std::shared_ptr<State> state,
                   std::shared_ptr<System> system)
      : inner_(std::move(inner)), state_(std::move(state)), system_(std::move(system)) {}

  absl::StatusOr<http::HttpResponse> Send(const runtime::Context& context,
                                          const http::HttpRequest& request) override {
    if (request.server_wait > base::Duration::zero()) return inner_->Send(context, request);
    const base::MonoTime began = context.clock().Now();
    NH_ASSIGN_OR_RETURN(const base::MonoTime until, system_->Begin(began, request.purpose));
    const auto place = state_->Begin(system_->Asked(request.purpose));
    absl::StatusOr<http::HttpResponse> outcome = inner_->Send(context.WithDeadline(until), request);
    state_->End(place);
    const base::MonoTime now = context.clock().Now();
    if (outcome.ok()) {
      system_->Replied(now, now - began);
    } else {
      system_->EndedWithoutReply(now, now - began, until - began);
    }
    if (outcome.ok() || absl::IsCancelled(outcome.status())) return outcome;
    if (now < until) {
      // After a write without an answer, a read says it.
      const bool is_known = request.effect == http::Effect::kWrite ||
                            !absl::IsUnavailable(outcome.status()) ||
                            http::IsTokenUnreadable(outcome.status());
      return is_known ? outcome : system_->WithCure(outcome.status());
    }
    // What became of a write is read once more.
    if (request.effect == http::Effect::kWrite) system_->Forget();
    return system_->GivenUp(request);
  }

 private:
  const std::shared_ptr<http::HttpTransport> inner_;
  const std::shared_ptr<State> state_;
  const std::shared_ptr<System> system_;
};

SystemWaits::SystemWaits(runtime::Clock& clock, std::function<bool()> has_printed,
                         std::ostream& err)
    : state_(std::make_shared<State>(std::move(has_printed), err)),
      timer_(clock.Every(kFirstLineAfter, [state = state_] { state->BecomeDue(); })) {}

std::shared_ptr<http::HttpTransport> SystemWaits::LimitOne(
    const std::shared_ptr<http::HttpTransport>& inner, const char* name, const std::string& key,
    const std::string& base_url) {
  const std::string address = AddressOf(base_url);
  const base::MutexLock lock(state_->mutex);
  std::shared_ptr<System>& system = state_->systems[name + (" " + address)];
  if (system == nullptr) system = std::make_shared<System>(name, key, address);
  return std::make_shared<LimitedTransport>(inner, state_, system);
}

http::RawTransports SystemWaits::Limit(const http::RawTransports& transports,
                                       const config::PluginConfig& config) {
  const auto harvester = kube::ResolveConnection(config.harvester);
  const auto nomad = nomad::ResolveConnection(config.nomad);
  const std::string& kubeconfig = config.harvester.kubeconfig_path;
  const std::string harvester_key = config.harvester.url.empty() && !kubeconfig.empty()
                                        ? "harvester_kubeconfig " + kubeconfig
                                        : "harvester_url (or HARVESTER_URL)";
  return {.harvester = LimitOne(transports.harvester, "Harvester", harvester_key,
                                harvester.ok() ? harvester->curl.base_url : ""),
          .nomad = LimitOne(transports.nomad, "Nomad", "nomad_address (or NOMAD_ADDR)",
                            nomad.ok() ? nomad->curl.base_url : ""),
          .warnings = transports.warnings};
}

}  // namespace nomad_harvester::cli
