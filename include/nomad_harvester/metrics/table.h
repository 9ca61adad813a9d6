// SPDX-License-Identifier: Apache-2.0
// The table of all metrics: name, type, labels, meaning.
#ifndef NOMAD_HARVESTER_METRICS_TABLE_H_
#define NOMAD_HARVESTER_METRICS_TABLE_H_

#include <span>
#include <string_view>

#include "nomad_harvester/metrics/sink.h"

namespace nomad_harvester::metrics {

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

#endif  // NOMAD_HARVESTER_METRICS_TABLE_H_
