// SPDX-License-Identifier: Apache-2.0
// Scripted faults for the requests of a simulated cluster, by verb, and a log of the requests.
#ifndef NOMAD_HARVESTER_TEST_SIMULATOR_REQUEST_SCRIPT_H_
#define NOMAD_HARVESTER_TEST_SIMULATOR_REQUEST_SCRIPT_H_

#include <algorithm>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "nomad_harvester/simulator/cluster.h"

namespace nomad_harvester::simulator {

// Sets the cluster's fault hook; requests of the client "spectator" are neither logged nor changed.
// Not thread-safe.
class RequestScript {
 public:
  explicit RequestScript(Cluster& cluster) {
    cluster.SetFaultHook([this](const RequestInfo& info) { return Judge(info); });
  }
  RequestScript(const RequestScript&) = delete;
  RequestScript& operator=(const RequestScript&) = delete;

  // Applies to the next `count` requests of that verb.
  void Next(const std::string& verb, const Fault& fault, std::size_t count = 1) {
    next_[verb].assign(count, fault);
  }
  // Applies to all other requests of that verb; Fault::None() ends it.
  void Always(const std::string& verb, const Fault& fault) { always_[verb] = fault; }
  // `others` is called once, when a request of that verb has arrived and before it is handled: what
  // other clients do at that moment.
  void Before(const std::string& verb, std::function<void()> others) {
    before_[verb] = std::move(others);
  }

  const std::vector<RequestInfo>& requests() const { return requests_; }
  std::size_t Count(const std::string& verb) const {
    return static_cast<std::size_t>(
        std::count_if(requests_.begin(), requests_.end(),
                      [&verb](const RequestInfo& request) { return request.verb == verb; }));
  }
  void Forget() { requests_.clear(); }

 private:
  Fault Judge(const RequestInfo& info) {
    if (info.client == "spectator") return Fault::None();
    requests_.push_back(info);
    Fault fault = always_[info.verb];
    if (std::deque<Fault>& next = next_[info.verb]; !next.empty()) {
      fault = next.front();
      next.pop_front();
    }
    if (const auto others = std::exchange(before_[info.verb], nullptr)) others();
    return fault;
  }

  std::map<std::string, std::deque<Fault>> next_;
  std::map<std::string, Fault> always_;
  std::map<std::string, std::function<void()>> before_;
  std::vector<RequestInfo> requests_;
};

}  // namespace nomad_harvester::simulator

#endif  // NOMAD_HARVESTER_TEST_SIMULATOR_REQUEST_SCRIPT_H_
