// SPDX-License-Identifier: Apache-2.0
// The interface through which modules report metrics, independent of how metrics are stored or
// served.
#ifndef NOMAD_HARVESTER_METRICS_SINK_H_
#define NOMAD_HARVESTER_METRICS_SINK_H_

#include <initializer_list>
#include <string_view>

#include "nomad_harvester/base/time.h"

namespace nomad_harvester::metrics {

// Each is a row of MetricTable(), which defines its name, meaning and labels.
enum class Metric {
  kBuildInfo,
  kVms,
  kVmCreated,
  kVmTerminated,
  kVmStart,
  kDrain,
  kVmLifetime,
  kScale,
  kBackOff,
  kRoom,
  kDrifted,
  kToReplace,
  kReplacementStopped,
  kLeftovers,
  kUnclaimed,
  kProtected,
  kLeaseHeld,
  kObserved,
  kApiRequest,
  kApiRetries,
  kErrors,
  // Of an apm block.
  kNodesNeeded,
  kPendingAllocations,
  kDemandRead,
  kQueries,
  kEnd,  // no metric: it is how many there are
};

// The values of the metric's labels, in the order of its row. They must come from a small set: a
// pool, a state, a verb; never a VM's name or a text from another system.
using Values = std::initializer_list<std::string_view>;

// Thread-safe. No method fails or blocks, except on a mutex that is held only during an addition.
class Sink {
 public:
  virtual ~Sink() = default;
  // A gauge.
  virtual void Set(Metric metric, Values values, double value) = 0;
  // A counter; adding 0 exports it before the first event.
  virtual void Add(Metric metric, Values values, double amount) = 0;
  // A histogram of seconds. A negative duration counts as 0, because two clocks may differ.
  virtual void Observe(Metric metric, Values values, base::Duration duration) = 0;
  // Exports a histogram before its first observation.
  virtual void Expect(Metric metric, Values values) = 0;
};

}  // namespace nomad_harvester::metrics

#endif  // NOMAD_HARVESTER_METRICS_SINK_H_
