// SPDX-License-Identifier: Apache-2.0
// Stores the metrics.
#ifndef NOMAD_HARVESTER_METRICS_REGISTRY_H_
#define NOMAD_HARVESTER_METRICS_REGISTRY_H_

#include <memory>
#include <span>
#include <string>
#include <string_view>

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

enum class Type { kGauge, kCounter, kHistogram };

struct MetricRow {
  Metric metric = Metric::kBuildInfo;
  Type type = Type::kGauge;
  std::string_view name = {};
  std::span<const std::string_view> labels = {};
  std::string_view help = {};            // one sentence, for Prometheus
  std::span<const double> buckets = {};  // of a histogram, in seconds
};

// Every metric, in the order of the enumeration.
std::span<const MetricRow> MetricTable();

}  // namespace nomad_harvester::metrics

#endif  // NOMAD_HARVESTER_METRICS_REGISTRY_H_
