// SPDX-License-Identifier: Apache-2.0
// Troubles of one act: requests of one kind for one object that are answered with an error, for a
// while or for ever.
#ifndef NOMAD_HARVESTER_TEST_SCENARIO_TROUBLE_H_
#define NOMAD_HARVESTER_TEST_SCENARIO_TROUBLE_H_

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "nomad_harvester/simulator/cluster.h"

#include "harness.h"

namespace nomad_harvester::scenario {

// A kind of request with an effect, for one object.
struct Act {
  System system = System::kHarvester;
  std::string verb{};      // as in RequestInfo
  std::string resource{};  // as in RequestInfo
  // What distinguishes requests of the same verb: "mark", "un-mark" or the key of an annotation of
  // a VM; "action", "holder" of a Lease; "start", "cancel" of a drain. Empty: nothing does.
  std::string aspect{};
  // The VM that it concerns, also if the object is its node, Secret or volume. Empty: the whole
  // pool, or in a rule: any.
  std::string vm{};

  bool operator==(const Act&) const = default;
  // "patch virtualmachines (mark)", without the VM.
  std::string Kind() const;
  friend std::ostream& operator<<(std::ostream& out, const Act& act);
};

inline const Act kDrain{
    .system = System::kNomad, .verb = "update", .resource = "drain", .aspect = "start"};
inline const Act kPurge{.system = System::kNomad, .verb = "update", .resource = "purge"};

// Renewals of a Lease are not acts.
bool IsRenewal(const RequestInfo& request);
// What a request with an effect does.
Act ActOf(const RequestInfo& request, const simulator::Cluster& cluster);
// Whether the act is of this kind, and for its VM if `kind` names one.
bool IsOfKind(const Act& act, const Act& kind);

// An error that a system answers instead of doing what it is asked for.
struct Answer {
  std::string name;
  // For that request.
  std::function<Fault(const RequestInfo&)> fault;

  friend std::ostream& operator<<(std::ostream& out, const Answer& answer) {
    return out << answer.name;
  }
};

// Refusals (docs/behaviour.md, "Liveness"), with the servers' own texts.
Answer Forbidden();    // 403 of either system
Answer Invalid();      // 422
Answer Denied();       // 400: a webhook of Harvester denied the request
Answer DeniedAs500();  // 500: the same, as Harvester sends plain Go errors
Answer BadRequest();   // 400 of Nomad
// Those that the system gives for such acts.
std::vector<Answer> RefusalsOf(const Act& act);

// Transient errors.
Answer Unavailable();  // 503; of Nomad 500 "No cluster leader"
Answer NoAnswer();     // the request is lost
Answer Conflict();     // 409; of Nomad and of a creation as Unavailable
Answer ServerError();  // 500 without a known text

// Accepted, and ignored: a webhook that undoes the write, or a DELETE that nothing carries out.
Answer Ignored();
bool MayBeIgnored(const Act& act);

// While it exists, the acts of a kind are answered so. It replaces the fault hook.
class Trouble {
 public:
  Trouble(Harness& h, Act kind, Answer answer);
  ~Trouble() { h_.cluster.SetFaultHook(nullptr); }
  Trouble(const Trouble&) = delete;
  Trouble& operator=(const Trouble&) = delete;

  // Only the VM of the first answer has it.
  void LimitToFirstVm() { first_vm_ = true; }
  // Ends by itself at the n-th answer.
  void LimitTo(int answers) { most_ = answers; }
  // Ends by itself that long after its first answer.
  void LimitTo(base::Duration duration) { duration_ = duration; }
  void End() { ended_ = true; }

  int answers() const { return answers_; }
  // That of the first answer; only after an answer.
  const std::string& vm() const { return vm_; }
  // When it was answered first; only after an answer.
  base::MonoTime begun() const { return begun_; }

 private:
  Fault OnRequest(const RequestInfo& request);

  Harness& h_;
  const Act kind_;
  const Answer answer_;
  bool first_vm_ = false;
  std::string vm_;
  int most_ = 0;
  base::Duration duration_{};
  bool ended_ = false;
  int answers_ = 0;
  base::MonoTime begun_{};
};

}  // namespace nomad_harvester::scenario

#endif  // NOMAD_HARVESTER_TEST_SCENARIO_TROUBLE_H_
