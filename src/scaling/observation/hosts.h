// SPDX-License-Identifier: Apache-2.0
// On which Harvester hosts VMs run, and in which zones those are, as far as it was read. Private to
// module scaling.
#ifndef NOMAD_HARVESTER_SRC_SCALING_OBSERVATION_HOSTS_H_
#define NOMAD_HARVESTER_SRC_SCALING_OBSERVATION_HOSTS_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/harvester/virtual_machine.h"
#include "nomad_harvester/kube/client.h"
#include "nomad_harvester/log/logger.h"
#include "nomad_harvester/runtime/context.h"
#include "nomad_harvester/scaling/snapshot.h"

#include "absl/status/statusor.h"

namespace nomad_harvester::scaling {

// How often, at rest, the instances of a namespace are listed, and one host is read.
inline constexpr base::Duration kHostsEvery = std::chrono::minutes(1);
// How long the zone of a host is believed.
inline constexpr base::Duration kZoneFor = std::chrono::minutes(10);

// What the pools of a configuration know together. Thread-safe.
class Hosts {
 public:
  // `kube`: a client without slots.
  Hosts(std::shared_ptr<const kube::KubeClient> kube, log::Logger logger)
      : kube_(std::move(kube)), logger_(std::move(logger)) {}

  // Whether Status should list the instances of the namespace now: nobody has for kHostsEvery. Then
  // the others need not.
  bool ListIsDue(const std::string& ns, base::MonoTime now);
  // Lists them. Blocks for one request; without the right, one WARN.
  void List(const runtime::Context& context, const std::string& ns);
  // Reads the host whose zone was not read for longest, if that is more than kZoneFor ago. Blocks
  // for one request at most.
  void RefreshZone(const runtime::Context& context);

  // Takes the hosts of a look of the loop, whose reads began at `began`, and fills its zones.
  void Record(const std::string& ns, base::MonoTime began, Look* look);
  // Fills hosts and zones of a look that has no instances.
  void Apply(const std::string& ns, Look* look) const;

  // The zone of a host, read unless it was within kZoneFor; empty: it has none, or the token may
  // not read hosts, which is one WARN. Blocks for one request at most.
  absl::StatusOr<std::string> ZoneOf(const runtime::Context& context, const std::string& host);

  // The turn of one of the few publications that may wait for Nomad at a time; it ends when the
  // pointer does, before this object. Null: all are taken.
  std::shared_ptr<void> BeginPublication();

 private:
  struct Zone {
    std::optional<std::string> name;  // unset: unknown
    std::optional<base::MonoTime> read_at;
  };
  struct Instances {
    base::MonoTime began{};                      // of the list
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
  std::map<std::string, base::MonoTime> listed_ NH_GUARDED_BY(mutex_);  // by namespace
  std::map<std::string, Instances> instances_ NH_GUARDED_BY(mutex_);    // likewise
  std::map<std::string, Zone> zones_ NH_GUARDED_BY(mutex_);             // by host
  std::optional<base::MonoTime> denied_at_ NH_GUARDED_BY(mutex_);       // hosts may not be read
  bool warned_of_hosts_ NH_GUARDED_BY(mutex_) = false;
  bool warned_of_instances_ NH_GUARDED_BY(mutex_) = false;
  int publications_ NH_GUARDED_BY(mutex_) = 0;
};

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SRC_SCALING_OBSERVATION_HOSTS_H_
