// SPDX-License-Identifier: Apache-2.0
// The simulated Nomad: clients, nodes, jobs, allocations, scheduler and drainer. Guarded by the
// cluster's mutex.
#ifndef NOMAD_HARVESTER_SIMULATOR_NOMAD_STATE_H_
#define NOMAD_HARVESTER_SIMULATOR_NOMAD_STATE_H_

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "nomad_harvester/simulator/options.h"

#include "world.h"

namespace nomad_harvester::simulator {

using StringMap = std::map<std::string, std::string>;

struct DrainStrategy {
  base::Duration deadline{};  // >0 after the request, 0 none, <0 immediately
  bool ignore_system_jobs = false;
  base::WallTime started_at{};
  std::optional<base::WallTime> force_at{};
  std::optional<base::MonoTime> force_at_mono{};
  // The jobs that had work on the node when the drainer looked first. Unset: it has not looked.
  std::optional<std::set<std::string>> watched_jobs{};
};

struct LastDrain {
  base::WallTime started_at{};  // whole seconds
  base::WallTime updated_at{};
  std::string status;  // "draining", "complete", "canceled"
  StringMap meta;
};

struct DriverInfo {
  bool detected = false;
  bool healthy = false;
  std::string description;
  base::WallTime updated_at{};
  bool operator==(const DriverInfo&) const = default;
};
using DriverInfos = std::map<std::string, DriverInfo>;

struct NomadNode {
  std::string id;
  NodeSpec spec;
  DriverInfos drivers;
  std::string address;
  std::string status = "ready";
  base::WallTime status_updated_at{};
  bool eligible = true;
  std::optional<DrainStrategy> drain;
  std::optional<LastDrain> last_drain;
  std::uint64_t create_index = 0;
  std::uint64_t modify_index = 0;
  // Its texts in lists without and with resources, and with the operating system; Touch clears
  // them.
  mutable std::array<std::string, 4> stubs;
};

struct NomadAllocation {
  std::string id;
  std::string job_id;
  std::string node_id;
  std::string node_name;
  JobSpec job;
  std::string desired = "run";
  std::string client_status = "pending";
  bool evicted = false;  // a drain wants it to stop
  std::string main_state = "pending";
  std::string poststop_state = "pending";  // if the job has such a task
  std::optional<base::WallTime> main_started, main_finished, poststop_started, poststop_finished;
  base::WallTime created_at{};
  base::MonoTime unknown_since{};
  std::uint64_t create_index = 0;
  std::uint64_t modify_index = 0;

  bool Terminal() const {
    return client_status == "complete" || client_status == "failed" || client_status == "lost";
  }
};

// A blocked evaluation of a job's only group.
struct NomadEvaluation {
  std::string id;
  int unplaced = 0;  // when it was made: not lowered when some of them are placed
  // Nodes that the job may not use, of those that take work, by the constraint, in Nomad's words.
  std::map<std::string, int> filtered;
  std::map<std::string, int> exhausted;  // nodes without room, by what lacks: "cpu", "memory"
  std::uint64_t create_index = 0;
};

struct NomadJob {
  JobSpec spec;
  bool stopped = false;
  std::uint64_t modify_index = 0;
  int queued = 0;  // not placed
  std::optional<NomadEvaluation> blocked{};
};

class NomadState {
 public:
  explicit NomadState(World& world) : world_(world) {}

  // --- Agents on machines. A live client keeps its node registered.
  std::string NextAddress();
  std::string AddClient(NodeSpec spec, std::string address, const ClientBehaviour& behaviour);
  void LoseClient(const std::string& id);    // no heartbeats from now on
  void ReturnClient(const std::string& id);  // heartbeats again: the node becomes ready
  bool IsAlive(const std::string& id) const;
  // Its agent restarts with another configuration, under the same ID. False: unknown client.
  bool ReRegister(const std::string& id, const std::function<void(NodeSpec&)>& change);
  // False: unknown node.
  bool SetStatus(const std::string& id, const std::string& status);
  ClientBehaviour BehaviourOf(const std::string& id) const;
  // Nomad's servers lose everything.
  void Restore(bool agents_return);

  // --- Client introduction (nomad_introduction.cc).
  // A token for a client of this name (empty: any) and pool.
  std::string Introduce(const std::string& name, const std::string& pool, base::Duration ttl);
  // Whether a client that is not known yet, and has this user data, may register.
  bool Admits(const NodeSpec& client, std::string_view user_data) const;

  // --- The effects of the endpoints; false: unknown node.
  bool Drain(const std::string& id, base::Duration deadline, bool ignore_system_jobs,
             const StringMap& meta);
  bool CancelDrain(const std::string& id, bool mark_eligible, const StringMap& meta);
  enum class Eligibility { kUnknownNode, kDraining, kUnchanged, kChanged };
  Eligibility SetEligibility(const std::string& id, bool eligible);
  bool Purge(const std::string& id);

  // Dynamic metadata of a client, by key; none: the key is removed.
  using DynamicMeta = std::map<std::string, std::optional<std::string>>;
  enum class Metadata { kUnknownNode, kNotConnected, kDone };
  Metadata SetMeta(const std::string& id, const DynamicMeta& changes);
  // What the client itself knows; unset: it is not connected.
  struct ClientMeta {
    StringMap all;
    DynamicMeta dynamic;
    StringMap fixed;  // of its configuration
  };
  std::optional<ClientMeta> MetaOf(const std::string& id) const;

  void RunJob(const JobSpec& job);
  bool StopJob(const std::string& id);
  void Hang(const std::string& node_id, bool hang);
  void PlaceLate(const JobSpec& job, base::Duration delay, const std::string& node);

  const std::map<std::string, NomadNode>& nodes() const { return nodes_; }
  const std::map<std::string, NomadAllocation>& allocations() const { return allocations_; }
  const std::map<std::string, NomadJob>& jobs() const { return jobs_; }
  const NomadNode* FindNode(const std::string& id) const;
  // By ID or name; of several nodes with the name, the one that registered last.
  const NomadNode* LookUp(const std::string& id_or_name) const;

  std::uint64_t index() const { return index_; }
  std::uint64_t nodes_index() const { return nodes_index_; }
  std::uint64_t allocations_index() const { return allocations_index_; }
  std::uint64_t jobs_index() const { return jobs_index_; }
  std::uint64_t evaluations_index() const { return evaluations_index_; }

 private:
  struct Client {
    NodeSpec spec;
    DynamicMeta dynamic_meta{};  // survives its restarts
    std::string address;
    bool alive = true;
    bool fell_silent = false;  // it runs, but is not heard: so not alive
    std::uint64_t life = 0;    // distinguishes the heartbeats before and after an outage
    ClientBehaviour behaviour{};
    base::MonoTime since{};  // its behaviour counts from here
    base::WallTime since_wall{};
    std::optional<base::MonoTime> initializing_until{};  // unset: for ever
    std::uint64_t turn = 0;       // number of the change of its behaviour; earlier ones are ignored
    bool has_registered = false;  // since it started
  };

  // What a client registers.
  static NodeSpec SpecOf(const Client& client);
  std::uint64_t Touch(NomadNode& node);
  std::uint64_t Touch(NomadAllocation& allocation);
  void EmitNode(EventKind kind, const NomadNode& node, std::string detail = "");
  void EmitAllocation(EventKind kind, const NomadAllocation& allocation);
  // Null: it was garbage-collected meanwhile.
  NomadAllocation* FindAllocation(const std::string& id);
  void Register(const std::string& id);
  void RegisterAgain(const std::string& id);  // at its next heartbeat, if it is not known by then
  void TakeUpWork(const std::string& id);
  void SetNodeStatus(NomadNode& node, const std::string& status);
  void WatchSilence(const std::string& id);
  void MissHeartbeat(const std::string& id);
  void Disconnect(NomadNode& node);
  void Expire(const std::string& allocation_id);
  bool HoldsDisconnected(const NomadAllocation& allocation) const;
  void MarkDown(const std::string& id);

  // nomad_behaviour.cc
  void Begin(const std::string& id, base::Duration shortest_start);
  void BecomeReady(const std::string& id, std::uint64_t turn);
  void FallBackLater(const std::string& id);
  bool IsInitializing(const Client& client) const;
  DriverInfos DriversOf(const Client& client) const;
  void ShowDrivers(const std::string& id);

  // nomad_collector.cc
  void ForgetLater(const NomadAllocation& allocation);
  void CollectLater(const NomadNode& node);

  // nomad_drainer.cc
  void WatchDrain(const std::string& id);
  void DrainStep(const std::string& id);
  void CompleteDrain(NomadNode& node, bool deadline_reached);
  std::set<std::string> JobsOn(const std::string& node_id) const;
  bool IsWatched(const std::string& job_id) const;
  void Evict(NomadAllocation& allocation);
  void CommitLatePlans(const NomadNode& node);
  void CommitLate(const JobSpec& job, const std::string& node_id);

  // nomad_scheduler.cc
  void Schedule();
  void ScheduleJob(NomadJob& job);
  void ScheduleSystemJob(const NomadJob& job);
  void SetQueued(NomadJob& job, int queued);
  static bool TakesWork(const NomadNode& node);
  static bool CanPlace(const NomadNode& node, const JobSpec& job);
  // Nomad evaluates a job on no others, and does not count them.
  static bool IsAmongNodesOf(const JobSpec& job, const NomadNode& node);
  // The constraint that keeps the job from the node, in Nomad's words; empty: none.
  static std::string Unmet(const NomadNode& node, const JobSpec& job);
  struct Load {
    int allocations = 0;
    std::int64_t cpu = 0;
    std::int64_t memory_mb = 0;
  };
  Load LoadOf(const NomadNode& node) const;
  // What lacks on a node for one more allocation: "cpu", "memory"; empty: nothing.
  static std::string_view Lacking(const NomadNode& node, const Load& load, const JobSpec& job);
  const NomadNode* LeastLoaded(const JobSpec& job) const;
  void Place(const JobSpec& job, const NomadNode& node);
  void Start(const std::string& id);
  void Stop(NomadAllocation& allocation);
  void EndMain(const std::string& id, const std::string& client_status);
  void EndPoststop(const std::string& id);
  void Lose(NomadAllocation& allocation);
  void EndLost(const std::string& id);
  void Reconnect(NomadAllocation& allocation);
  void LoseAllOn(const std::string& node_id);

  World& world_;
  std::uint64_t index_ = 10;
  std::uint64_t nodes_index_ = 1;
  std::uint64_t allocations_index_ = 1;
  std::uint64_t jobs_index_ = 1;
  std::uint64_t evaluations_index_ = 1;
  int addresses_ = 0;
  std::map<std::string, Client> clients_;
  std::map<std::string, NomadNode> nodes_;
  std::map<std::string, NomadAllocation> allocations_;
  std::map<std::string, NomadJob> jobs_;
  std::set<std::string> hanging_;
  struct LatePlan {
    JobSpec job;
    base::Duration delay{};
    std::string node;
  };
  std::vector<LatePlan> late_plans_;
  struct IntroToken {
    std::string name;
    std::string pool;
    base::WallTime expires{};
  };
  std::map<std::string, IntroToken, std::less<>> tokens_;
};

}  // namespace nomad_harvester::simulator

#endif  // NOMAD_HARVESTER_SIMULATOR_NOMAD_STATE_H_
