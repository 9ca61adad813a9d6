// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cassert>
#include <chrono>
#include <sstream>
#include <vector>

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include "nomad_harvester/base/secret.h"
#include "nomad_harvester/metrics/endpoint.h"
#include "nomad_harvester/metrics/table.h"

namespace nomad_harvester::metrics {
namespace {

// One row with its family, of which the others are null.
struct Kept {
  const MetricRow* row = nullptr;
  prometheus::Family<prometheus::Gauge>* gauges = nullptr;
  prometheus::Family<prometheus::Counter>* counters = nullptr;
  prometheus::Family<prometheus::Histogram>* histograms = nullptr;
};

template <typename Builder>
auto& Register(Builder builder, const MetricRow& row, prometheus::Registry& registry) {
  return builder.Name(std::string(row.name)).Help(std::string(row.help)).Register(registry);
}

class PrometheusRegistry final : public Registry {
 public:
  PrometheusRegistry() {
    for (const MetricRow& row : MetricTable()) {
      Kept kept{.row = &row};
      switch (row.type) {
        case Type::kGauge:
          kept.gauges = &Register(prometheus::BuildGauge(), row, registry_);
          break;
        case Type::kCounter:
          kept.counters = &Register(prometheus::BuildCounter(), row, registry_);
          break;
        case Type::kHistogram:
          kept.histograms = &Register(prometheus::BuildHistogram(), row, registry_);
          break;
      }
      kept_.push_back(kept);
    }
  }

  void Set(Metric metric, Values values, double value) override {
    const Kept& kept = Find(metric);
    kept.gauges->Add(LabelsOf(*kept.row, values)).Set(value);
  }

  void Add(Metric metric, Values values, double amount) override {
    const Kept& kept = Find(metric);
    kept.counters->Add(LabelsOf(*kept.row, values)).Increment(amount);
  }

  void Observe(Metric metric, Values values, base::Duration duration) override {
    const std::chrono::duration<double> seconds = std::max(duration, base::Duration::zero());
    Histogram(metric, values).Observe(seconds.count());
  }

  void Expect(Metric metric, Values values) override { Histogram(metric, values); }

  std::string Text() const override {
    std::ostringstream text;
    prometheus::TextSerializer().Serialize(text, registry_.Collect());
    return base::WithoutSecrets(text.str());
  }

 private:
  prometheus::Histogram& Histogram(Metric metric, Values values) {
    const Kept& kept = Find(metric);
    const std::vector<double> buckets(kept.row->buckets.begin(), kept.row->buckets.end());
    return kept.histograms->Add(LabelsOf(*kept.row, values), buckets);
  }

  const Kept& Find(Metric metric) const { return kept_[static_cast<std::size_t>(metric)]; }

  static prometheus::Labels LabelsOf(const MetricRow& row, Values values) {
    assert(values.size() == row.labels.size());
    prometheus::Labels labels;
    const auto* value = values.begin();
    for (const std::string_view name : row.labels) {
      labels.emplace(name, value == values.end() ? std::string_view() : *value++);
    }
    return labels;
  }

  prometheus::Registry registry_;
  std::vector<Kept> kept_;
};

}  // namespace

std::shared_ptr<Registry> MakeRegistry(const BuildInfo& build) {
  auto registry = std::make_shared<PrometheusRegistry>();
  registry->Set(Metric::kBuildInfo, {build.version, build.commit}, 1);
  return registry;
}

}  // namespace nomad_harvester::metrics
