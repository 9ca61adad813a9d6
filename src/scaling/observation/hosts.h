// SPDX-License-Identifier: Apache-2.0
// Remembers on which Harvester hosts VMs run, the zones of these hosts, and which hosts are
// cordoned, as last read. Private to module scaling.
#ifndef NOMAD_HARVESTER_SRC_SCALING_OBSERVATION_HOSTS_H_
#define NOMAD_HARVESTER_SRC_SCALING_OBSERVATION_HOSTS_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/harvester/virtual_machine.h"
#include "nomad_harvester/kube/client.h"
#include "nomad_harvester/log/logger.h"
#include "nomad_harvester/runtime/context.h"
#include "nomad_harvester/scaling/snapshot.h"

#include "absl/status/statusor.h"

namespace nomad_harvester::scaling {

// What the hosts are read for. Each has a clock of its own: a policy may want one alone.
enum class HostUse { kPublish, kEvacuate };

// At rest, how often the instances of a namespace are listed, and one host is read.
inline constexpr base::Duration kHostsEvery = std::chrono::minutes(1);
// A host's zone is read again after this time.
inline constexpr base::Duration kZoneFor = std::chrono::minutes(10);
// How long to wait for the hosts, without which everything else goes on.
inline constexpr base::Duration kHostsLimit = std::chrono::seconds(4);
// A host counts as cordoned only after this time: operators cordon hosts for a moment, too.
inline constexpr base::Duration kLeaveHostAfter = std::chrono::seconds(30);
// A list of instances that is older does not tell on which host a VM is that is to leave it.
inline constexpr base::Duration kHostsFor = std::chrono::minutes(2);

// Shared by the pools of a configuration. Thread-safe.
class Hosts {
 public:
  // `kube`: a client without slots.
  Hosts(std::shared_ptr<const kube::KubeClient> kube, log::Logger logger)
      : kube_(std::move(kube)), logger_(std::move(logger)) {}

  // True if the hosts of the namespace's VMs were not read for this use for kHostsEvery. The caller
  // should then read them; other callers get false.
  bool IsDue(HostUse use, const std::string& ns, base::MonoTime now);
  // Lists the instances of the namespace. Blocks for one request. Logs one WARN if the token lacks
  // the right.
  void List(const runtime::Context& context, const std::string& ns);
  // Lists all hosts, to know which are cordoned. Blocks for one request. Logs one WARN while that
  // fails.
  void ListCordoned(const runtime::Context& context);
  // Fills in why VMs are to leave their hosts (rule R7).
  void ApplyCordoned(const std::string& ns, base::MonoTime now, Look* look) const;
  // Reads the host whose zone was not read for longest, if that is more than kZoneFor ago. Blocks
  // for one request at most.
  void RefreshZone(const runtime::Context& context);

  // Stores the hosts that a look of the loop shows, and fills in the look's zones. `began`: when
  // the reads of the look began.
  void Record(const std::string& ns, base::MonoTime began, Look* look);
  // Fills in hosts and zones of a look that has no instances.
  void Apply(const std::string& ns, Look* look) const;

  // The zone of a host, read if that was not done within kZoneFor. Empty if the host has none, or
  // if the token may not read hosts, which is logged as one WARN. Blocks for one request at most.
  absl::StatusOr<std::string> ZoneOf(const runtime::Context& context, const std::string& host);

  // Begins one of the few publications that may wait for Nomad at the same time. It ends when the
  // pointer is destroyed, which must happen before this object is. Null: too many are under way.
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
  void FillZones(Look* look) const NH_REQUIRES(mutex_);
  bool IsDenied(base::MonoTime now) const NH_REQUIRES(mutex_);

  const std::shared_ptr<const kube::KubeClient> kube_;
  const log::Logger logger_;
  mutable base::Mutex mutex_;
  std::map<std::pair<HostUse, std::string>, base::MonoTime> read_ NH_GUARDED_BY(mutex_);
  std::map<std::string, Instances> instances_ NH_GUARDED_BY(mutex_);  // by namespace
  std::map<std::string, Zone> zones_ NH_GUARDED_BY(mutex_);           // by host
  // By host, when it was first seen cordoned.
  std::map<std::string, base::MonoTime> cordoned_since_ NH_GUARDED_BY(mutex_);
  std::optional<base::MonoTime> denied_at_ NH_GUARDED_BY(mutex_);  // the last 403 for a host
  bool warned_of_hosts_ NH_GUARDED_BY(mutex_) = false;
  bool warned_of_host_list_ NH_GUARDED_BY(mutex_) = false;
  bool warned_of_instances_ NH_GUARDED_BY(mutex_) = false;
  int publications_ NH_GUARDED_BY(mutex_) = 0;
};

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SRC_SCALING_OBSERVATION_HOSTS_H_
