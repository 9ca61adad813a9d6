// SPDX-License-Identifier: Apache-2.0
// Faults injected into requests from a client to the simulated servers.
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
  std::string client{};  // the client of the transport
  System system = System::kHarvester;
  http::Method method = http::Method::kGet;
  std::string target{};
  std::map<std::string, std::string> query{};  // the target's, unescaped
  std::string body{};
  // "get", "list", "create", "update", "patch", "delete"; "ask" for access reviews, "try" for
  // dryRun=All. Writes to Nomad are "update", except "create" and "delete" of jobs.
  std::string verb{};
  // The plural of a Kubernetes resource; for Nomad "nodes", "node", "node-allocations",
  // "allocations", "allocation", "drain", "eligibility", "purge", "introduction", "jobs",
  // "node-pool", "jwks.json", or the first segment of the path ("acl", "status", …).
  std::string resource{};
  std::string name{};  // of the object, or ID of the node or allocation; empty for lists
  bool has_effect = false;
  http::Effect effect = http::Effect::kRead;  // as declared by its client
  int sequence = 0;                           // of all requests, from 1
  int effect_sequence = 0;  // of the requests with an effect, from 1; 0 for the others
};

struct Fault {
  enum class Kind {
    kNone,
    kDrop,          // lost in transit: UNAVAILABLE, not applied
    kDropReply,     // applied, the reply is lost: UNAVAILABLE
    kAnswer,        // the reply is `status` and `body`; not applied
    kCutReply,      // applied; the reply's body is truncated
    kDelay,         // arrives `delay` later and is applied then, even if the client gave up
    kDie,           // UNAVAILABLE for this client from this request on: its process was killed
    kApplyThenDie,  // the same, but this request is applied
  };
  Kind kind = Kind::kNone;
  int status = 0;
  std::string body{};  // of kAnswer; empty: the system's own body for that status
  std::string retry_after{};
  std::string nomad_index{};  // of kAnswer: the header X-Nomad-Index; empty: none
  base::Duration delay{};
  // For kNone. Called after the request is applied and before the reply is delivered, to simulate
  // events while the reply is in transit or the client's process is suspended.
  std::function<void()> before_reply{};

  static Fault None() { return {}; }
  static Fault Drop() { return {.kind = Kind::kDrop}; }
  static Fault DropReply() { return {.kind = Kind::kDropReply}; }
  static Fault CutReply() { return {.kind = Kind::kCutReply}; }
  static Fault Die() { return {.kind = Kind::kDie}; }
  static Fault ApplyThenDie() { return {.kind = Kind::kApplyThenDie}; }
  static Fault Answer(int status, std::string body = "", std::string retry_after = "") {
    return {.kind = Kind::kAnswer,
            .status = status,
            .body = std::move(body),
            .retry_after = std::move(retry_after)};
  }
  // A list from Nomad at this index.
  static Fault NomadList(std::string body, std::uint64_t index) {
    Fault fault = Answer(200, std::move(body));
    fault.nomad_index = std::to_string(index);
    return fault;
  }
  static Fault BeforeReply(std::function<void()> fn) { return {.before_reply = std::move(fn)}; }
  static Fault Delay(base::Duration delay) { return {.kind = Kind::kDelay, .delay = delay}; }
};

// How a request is refused, with the reason and the text of the real server.
enum class Refusal {
  kNone,         // the request is applied; the rule only delays it
  kAnswer,       // `status` and `text`
  kForbidden,    // 403: RBAC, Nomad's ACL. Reviews still allow it: see Cluster::Forbid
  kUnavailable,  // an API server that shuts down (503); a Nomad without a leader (500)
};

// A matching request is not applied, but counted like any other, also if its object is missing.
struct RefusalRule {
  System system = System::kHarvester;
  // As in RequestInfo; empty: any. Dry runs and access reviews match only rules that name their
  // verbs, "try" and "ask".
  std::string verb{};
  std::string resource{};
  std::string name{};
  Refusal kind = Refusal::kForbidden;
  int status = 0;      // of kAnswer
  std::string text{};  // of kAnswer: the body
  // How long such a request takes before it is answered. A request whose client gives up meanwhile
  // is not applied.
  base::Duration takes{};
};

}  // namespace nomad_harvester::simulator

#endif  // NOMAD_HARVESTER_SIMULATOR_FAULT_H_
