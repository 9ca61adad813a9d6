// SPDX-License-Identifier: Apache-2.0
// The safety invariants of docs/behaviour.md, checked after every change of the simulated cluster.
// They read the cluster itself, never the plugin's state. All pools of a scenario are in
// kNamespace; a request that changes an object of another namespace, Leases aside, is a violation.
#ifndef NOMAD_HARVESTER_TEST_SCENARIO_INVARIANTS_H_
#define NOMAD_HARVESTER_TEST_SCENARIO_INVARIANTS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "nomad_harvester/base/time.h"
#include "nomad_harvester/runtime/clock.h"
#include "nomad_harvester/simulator/cluster.h"

#include "nlohmann/json_fwd.hpp"

namespace nomad_harvester::scenario {

class Invariants {
 public:
  // Watches `cluster`, which uses `clock`, until destroyed.
  Invariants(const runtime::Clock& clock, simulator::Cluster& cluster);
  ~Invariants();
  Invariants(const Invariants&) = delete;
  Invariants& operator=(const Invariants&) = delete;

  // A Scale of `pool` to `wanted` is open. Scales of two processes nest: what is stored on the
  // Lease belongs to the one that began last.
  class Scale {
   public:
    Scale(Invariants& invariants, std::string pool, std::int64_t wanted);
    ~Scale();
    Scale(const Scale&) = delete;
    Scale& operator=(const Scale&) = delete;
    // It has returned: what the background stores later is not the action of this Scale.
    void SetAccepted() const;
    // It returned OK, and the background has finished its work without an error.
    void CheckDone() const;

   private:
    Invariants& invariants_;
  };

  // Requests may arrive after their sender lost its Lease, later than the 20 s that the Lease
  // covers: a repeated drain can then not be distinguished from a first one.
  void ExpectLateRequests() { late_requests_ = true; }

  // Operators act between any two requests. Nomad's node writes have no precondition: an operator's
  // change to a node within `slack` before a deletion may be missed by the last read. The size of a
  // pool may differ from the action's target, too.
  void ExpectOperators(base::Duration slack) { operator_slack_ = slack; }

  // The pools' ready_drivers. By default none.
  void RequireDriver(const std::string& driver) { drivers_.insert(driver); }

  // Requests are refused: victims whose mark is refused go last (C8).
  void ExpectRefusals() { refusals_ = true; }

  // What a test expects after convergence.
  struct Rest {
    std::string pool = "web";
    std::int64_t count = 0;
    // on_join_timeout = "keep", or a node that could be the VM: broken VMs may exist in addition.
    bool keeps_broken = false;
  };

  const std::vector<std::string>& violations() const { return violations_; }
  // Returns all violations so far, and checks I4, I5 and that the pool has `count` VMs.
  std::vector<std::string> AtRest(const Rest& rest) const;
  int checks() const { return checks_; }
  // When a VM other than `name`, its node, or an object that was made for it changed last; the
  // start of the clock if none did. Lease and Events aside.
  base::WallTime LastChangeBeside(const std::string& name) const;

 private:
  // The properties of a VM that the rules use.
  struct Vm {
    std::string name;
    std::string pool;
    std::string action;  // that created it
    bool member = false;
    bool marked = false;
    bool terminating = false;
    bool registered = false;  // recorded as such
    bool ready = false;       // likewise
    bool is_protected = false;
    bool goes_last = false;  // a removal of it was undone
    std::string replaces;    // uid of the VM whose place it takes
    bool waits = false;      // it is Halted until that one is gone
    base::WallTime created{};
    base::WallTime kept_since{};  // when its last removal was undone
    bool marked_by_hand = false;
    std::string failing;  // the failing status
    base::WallTime failing_since{};
    std::optional<base::WallTime> join_deadline;
  };
  // Whether a VM was never ready and is past its time. A process may have observed it earlier or
  // later, or extend the join deadline because Nomad was unreadable (C15).
  enum class Broken { kNo, kPerhaps, kSurely };
  struct OpenScale {
    std::string pool;
    std::int64_t wanted = 0;
    // The count may change while a Scale observes the pool, so its limits follow from the range.
    std::int64_t least = 0;
    std::int64_t most = 0;
    std::string action{};  // its id, once it is stored
    bool accepted = false;
  };
  // What an action may do (I2, I3), from the moment at which it was stored.
  struct Action {
    std::int64_t wanted = 0;
    std::int64_t removals = 0;
    std::int64_t creations = 0;
    std::set<std::string> marked;  // uids
    base::WallTime stored{};
    std::string ready_victim{};     // one that it marked although its node was ready
    std::set<std::string> created;  // uids, or names among operators
  };

  // What is true of a node, whatever anybody has recorded (C17). A drain does not change it.
  struct Readiness {
    bool now = false;
    base::WallTime since{};  // it has been so
    bool ever = false;
  };

  void Check(const simulator::Event& event);
  void NoteChange(const simulator::Event& event);
  void Remember(const simulator::Event& event);
  void NoteNode(const simulator::Event& event);
  bool IsReady(const nlohmann::json& node) const;
  Readiness ReadinessOf(const std::string& node_id) const;
  bool IsReadyForGood(const std::string& node_id) const;
  void CheckReady(const simulator::Event& event, const Vm& vm);
  void CheckDelivery(const OpenScale& scale);
  void CheckVictims(const OpenScale& scale);
  bool IsElsewhere(const std::string& uid, const Vm& vm) const;
  void NoteBackOff(const simulator::Event& event);
  void NoteLease(const simulator::Event& event);
  void NoteLateAction(const simulator::Event& event, const std::string& pool,
                      const nlohmann::json& text, Action* action);
  void CheckMark(const simulator::Event& event);
  void CheckBrokenMark(const simulator::Event& event, const Vm& vm);
  void CheckUnhealthyMark(const simulator::Event& event, const Vm& vm);
  void CheckStart(const simulator::Event& event, const Vm& vm);
  void CheckReplacedMark(const simulator::Event& event, const Vm& vm);
  void CheckReplacement(const simulator::Event& event, const Vm& vm);
  // It takes the place of a VM that stands, and does not count before that one goes (R1).
  bool IsPendingReplacement(const Vm& vm) const;
  bool IsNodeOfVm(const std::string& node_id) const;
  bool IsMarkedNow(const std::string& uid) const;
  void CheckDrain(const simulator::Event& event);
  void CheckUndoing(const simulator::Event& event);
  void CheckEligibility(const simulator::Event& event);
  void CheckPurge(const simulator::Event& event);
  void CheckLeftover(const simulator::Event& event);
  void CheckDeletion(const simulator::Event& event);
  void CheckNodeOfDeleted(const simulator::Event& event, const nlohmann::json& mark);
  void CheckCreation(const simulator::Event& event);
  Broken ClassifyBroken(const std::string& uid, const Vm& vm) const;
  // Members of the pool that are neither marked nor terminating nor broken to the degree `but`.
  std::int64_t Standing(const std::string& pool, Broken but) const;
  bool TouchedLately(const std::string& node_id) const;
  bool RegisteredLately(const std::string& node_id) const;
  void Violate(const simulator::Event& event, const std::string& text);

  void CheckVmAtRest(const nlohmann::json& vm, const Rest& rest,
                     std::vector<std::string>* problems) const;
  void CheckNodesAtRest(const std::set<std::string>& uids,
                        std::vector<std::string>* problems) const;
  // `vms`: whether each VM is terminating, by name.
  void CheckStorageAtRest(const std::map<std::string, bool>& vms,
                          std::vector<std::string>* problems) const;

  const runtime::Clock& clock_;
  simulator::Cluster& cluster_;
  std::vector<std::string> violations_;
  std::map<std::string, Vm> vms_;  // by uid
  std::vector<OpenScale> open_;
  std::map<std::string, std::int64_t> last_wanted_;                     // by pool
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> asked_;  // by pool: least and most
  std::map<std::string, Action> actions_;                               // by id
  std::map<std::string, std::string> lease_text_;  // by name: the annotation observed last
  std::map<std::string, Readiness> nodes_;         // by ID
  std::set<std::string> drivers_;
  std::map<std::string, std::set<std::string>> never_ready_;  // by pool: uids
  std::map<std::string, std::int64_t> failures_;              // by pool: that were ever counted
  std::set<std::string> removed_;                             // uids whose deletion was requested
  std::set<std::string> named_;                    // the names of all members that ever existed
  std::map<std::string, std::string> restored_;    // by claim: the member whose spec named it
  std::map<std::string, base::WallTime> changed_;  // by name of the VM: see LastChangeBeside
  std::set<std::string> gone_names_;               // of VMs that have existed
  bool late_requests_ = false;
  bool refusals_ = false;
  std::optional<base::Duration> operator_slack_;
  std::map<std::string, base::WallTime> touched_;     // by node ID: the last change by an operator
  std::map<std::string, base::WallTime> registered_;  // by node ID
  int checks_ = 0;
};

}  // namespace nomad_harvester::scenario

#endif  // NOMAD_HARVESTER_TEST_SCENARIO_INVARIANTS_H_
