// SPDX-License-Identifier: Apache-2.0
// Stores the metrics.
#ifndef NOMAD_HARVESTER_METRICS_REGISTRY_H_
#define NOMAD_HARVESTER_METRICS_REGISTRY_H_

#include <memory>
#include <string>

#include "nomad_harvester/metrics/sink.h"

namespace nomad_harvester::metrics {

struct BuildInfo {
  std::string version;
  std::string commit;
};

// A sink with readable content. Thread-safe.
class Registry : public Sink {
 public:
  // Returns Prometheus' text format 0.0.4, without secrets (rule P3).
  virtual std::string Text() const = 0;
};
std::shared_ptr<Registry> MakeRegistry(const BuildInfo& build);

}  // namespace nomad_harvester::metrics

#endif  // NOMAD_HARVESTER_METRICS_REGISTRY_H_
