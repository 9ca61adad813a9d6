// SPDX-License-Identifier: Apache-2.0
// What can go wrong between a client and the simulated servers.
#ifndef NOMAD_HARVESTER_SIMULATOR_FAULT_H_
#define NOMAD_HARVESTER_SIMULATOR_FAULT_H_

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "nomad_harvester/base/time.h"
#include "nomad_harvester/http/message.h"

namespace nomad_harvester::simulator {

enum class System { kHarvester, kNomad };
std::string_view SystemName(System system);

struct RequestInfo {
  std::string client{};  // whose transport it came through
  System system = System::kHarvester;
  http::Method method = http::Method::kGet;
  std::string target{};
  std::map<std::string, std::string> query{};  // the target's, unescaped
  std::string body{};
  // "get", "list", "create", "update", "patch", "delete"; "ask" for access reviews, "try" for
  // dryRun=All. Nomad's writes are "update", except "create" and "delete" of jobs.
  std::string verb{};
  // The plural of Kubernetes' resources; for Nomad "nodes", "node", "node-allocations",
  // "allocations", "allocation", "drain", "eligibility", "purge", "jobs", or the path's first
  // member ("acl", "status", …).
  std::string resource{};
  std::string name{};  // of the object, the node's or the allocation's ID; empty for lists
  bool has_effect = false;
  http::Effect effect = http::Effect::kRead;  // as its client declares it
  int sequence = 0;                           // of all requests, from 1
  int effect_sequence = 0;  // of the requests with an effect, from 1; 0 for the others
};

struct Fault {
  enum class Kind {
    kNone,
    kDrop,          // lost on the way: UNAVAILABLE, not applied
    kDropReply,     // applied, then UNAVAILABLE
    kAnswer,        // answered with `status` and `body`, not applied
    kCutReply,      // applied; the answer's body ends in the middle
    kDelay,         // arrives `delay` later: applied then, even if the client has given up
    kDie,           // UNAVAILABLE for this client from this request on: its process was killed
    kApplyThenDie,  // the same, but this request is applied
  };
  Kind kind = Kind::kNone;
  int status = 0;
  std::string body{};  // of kAnswer; empty: what the system itself would say with that status
  std::string retry_after{};
  base::Duration delay{};
  // Called once the request is applied, before its answer is delivered: what happens while the
  // answer is on its way, or while the client's process stands still. Of kNone.
  std::function<void()> before_reply{};

  static Fault None() { return {}; }
  static Fault Drop() { return Of(Kind::kDrop); }
  static Fault DropReply() { return Of(Kind::kDropReply); }
  static Fault CutReply() { return Of(Kind::kCutReply); }
  static Fault Die() { return Of(Kind::kDie); }
  static Fault ApplyThenDie() { return Of(Kind::kApplyThenDie); }
  static Fault Answer(int status, std::string body = "", std::string retry_after = "") {
    Fault fault = Of(Kind::kAnswer);
    fault.status = status;
    fault.body = std::move(body);
    fault.retry_after = std::move(retry_after);
    return fault;
  }
  static Fault BeforeReply(std::function<void()> fn) {
    Fault fault;
    fault.before_reply = std::move(fn);
    return fault;
  }
  static Fault Delay(base::Duration delay) {
    Fault fault = Of(Kind::kDelay);
    fault.delay = delay;
    return fault;
  }

 private:
  static Fault Of(Kind kind) {
    Fault fault;
    fault.kind = kind;
    return fault;
  }
};

}  // namespace nomad_harvester::simulator

#endif  // NOMAD_HARVESTER_SIMULATOR_FAULT_H_
