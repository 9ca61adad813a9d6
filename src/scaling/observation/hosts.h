// SPDX-License-Identifier: Apache-2.0
// Remembers the Harvester hosts on which VMs run, their zones, and which hosts are cordoned, as
// last read. Private to module scaling.
#ifndef NOMAD_HARVESTER_SRC_SCALING_OBSERVATION_HOSTS_H_
#define NOMAD_HARVESTER_SRC_SCALING_OBSERVATION_HOSTS_H_

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/harvester/host_room.h"
#include "nomad_harvester/harvester/virtual_machine.h"
#include "nomad_harvester/kube/client.h"
#include "nomad_harvester/log/logger.h"
#include "nomad_harvester/runtime/context.h"
#include "nomad_harvester/scaling/snapshot.h"

#include "absl/status/statusor.h"

namespace nomad_harvester::scaling {

// The purposes of reading hosts. Each has its own interval, because a policy may want only one.
enum class HostUse { kPublish, kEvacuate, kRoom };

// Intervals at rest between lists of a namespace's instances, and between reads of single hosts.
inline constexpr base::Duration kHostsEvery = std::chrono::minutes(1);
// A host's zone is read again after this time.
inline constexpr base::Duration kZoneFor = std::chrono::minutes(10);
// How long to wait for the hosts (rule C8); everything else works without them.
inline constexpr base::Duration kHostsLimit = std::chrono::seconds(3);
// A host counts as cordoned only after this time, because operators also cordon hosts briefly.
inline constexpr base::Duration kLeaveHostAfter = std::chrono::seconds(30);
// An older list of instances or rooms proves nothing (rules R7, C2).
inline constexpr base::Duration kHostsFor = std::chrono::minutes(2);

using HostRooms = std::vector<harvester::HostRoom>;

// Returns what the pool's newest VM asks of its host. Blocks for one request; none if it has no VM.
// NOT_FOUND: it has no VM any more.
absl::StatusOr<harvester::VmNeed> NeedOfNewestVm(const runtime::Context& context,
                                                 const kube::KubeClient& client,
                                                 const PoolSnapshot& snapshot);

// Shared by the pools of a configuration. Thread-safe.
class Hosts {
 public:
  // `kube`: a client without slots.
  Hosts(std::shared_ptr<const kube::KubeClient> kube, log::Logger logger)
      : kube_(std::move(kube)), logger_(std::move(logger)) {}

  // True if the hosts of the namespace's VMs were not read for this use within kHostsEvery. The
  // caller should then read them; other callers get false. The rooms are those of all namespaces.
  bool IsDue(HostUse use, const std::string& ns, base::MonoTime now);
  // Lists the namespace's instances. Blocks for one request. Logs one WARN if the token lacks the
  // right.
  void List(const runtime::Context& context, const std::string& ns);
  // Lists all hosts and returns the cordoned ones; none if they cannot be read. Blocks for one
  // request. `evacuates`: while that fails, logs one WARN.
  std::set<std::string> ListCordoned(const runtime::Context& context, bool evacuates = true);
  // Lists the hosts with what is requested on them. Blocks for two requests. PERMISSION_DENIED, for
  // kZoneFor without a request: the token lacks one of the two optional rights.
  absl::StatusOr<HostRooms> ListRooms(const runtime::Context& context);
  // Returns the last such list. nullopt: it is not newer than `*last`, or is older than kHostsFor.
  // `*last` becomes its time.
  std::optional<HostRooms> NewRooms(base::MonoTime now, base::MonoTime* last) const;
  // Sets why VMs must leave their hosts (rule R7).
  void ApplyCordoned(const std::string& ns, base::MonoTime now, Observation* observation) const;
  // Reads the host with the oldest zone, if that is older than kZoneFor. Blocks for at most one
  // request.
  void RefreshZone(const runtime::Context& context);

  // Stores the hosts found by an Observation of the loop, and fills in the Observation's zones.
  // `began`: when the reads of the Observation started.
  void Record(const std::string& ns, base::MonoTime began, Observation* observation);
  // Fills in hosts and zones of an Observation without instances.
  void Apply(const std::string& ns, Observation* observation) const;

  // Returns a host's zone, reading it if it is older than kZoneFor. Empty if the host has none, or
  // if the token lacks the right to read hosts, which is logged as one WARN. Blocks for at most one
  // request.
  absl::StatusOr<std::string> ZoneOf(const runtime::Context& context, const std::string& host);

  // Starts one of the few publications that may wait for Nomad at the same time. It ends when the
  // pointer is destroyed, which must happen before this object is. Null: too many are running.
  std::shared_ptr<void> BeginPublication();

 private:
  struct Zone {
    std::optional<std::string> name;  // unset: unknown
    std::optional<base::MonoTime> read_at;
  };
  struct Instances {
    base::MonoTime began{};                      // of the request
    std::map<std::string, std::string> host_of;  // by VM name
  };
  void Keep(const std::string& ns, base::MonoTime began,
            std::map<std::string, std::string> host_of);
  absl::Status ReadZone(const runtime::Context& context, const std::string& host);
  void FillZones(Observation* observation) const NH_REQUIRES(mutex_);
  bool IsDenied(base::MonoTime now) const NH_REQUIRES(mutex_);

  const std::shared_ptr<const kube::KubeClient> kube_;
  const log::Logger logger_;
  mutable base::Mutex mutex_;
  std::map<std::pair<HostUse, std::string>, base::MonoTime> read_ NH_GUARDED_BY(mutex_);
  std::map<std::string, Instances> instances_ NH_GUARDED_BY(mutex_);  // by namespace
  std::map<std::string, Zone> zones_ NH_GUARDED_BY(mutex_);           // by host
  // When each host was first seen cordoned.
  std::map<std::string, base::MonoTime> cordoned_since_ NH_GUARDED_BY(mutex_);
  std::optional<base::MonoTime> denied_at_ NH_GUARDED_BY(mutex_);  // the last 403 for a host
  std::optional<base::MonoTime> rooms_denied_at_ NH_GUARDED_BY(mutex_);
  HostRooms rooms_ NH_GUARDED_BY(mutex_);
  base::MonoTime rooms_read_at_ NH_GUARDED_BY(mutex_){};
  bool warned_of_hosts_ NH_GUARDED_BY(mutex_) = false;
  bool warned_of_host_list_ NH_GUARDED_BY(mutex_) = false;
  bool warned_of_instances_ NH_GUARDED_BY(mutex_) = false;
  int publications_ NH_GUARDED_BY(mutex_) = 0;
};

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SRC_SCALING_OBSERVATION_HOSTS_H_
