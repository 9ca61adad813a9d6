// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/metrics/registry.h"

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

namespace nomad_harvester::metrics {
namespace {

// One row with its family; the other two are null.
struct RegisteredRow {
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
      RegisteredRow registered{.row = &row};
      switch (row.type) {
        case Type::kGauge:
          registered.gauges = &Register(prometheus::BuildGauge(), row, registry_);
          break;
        case Type::kCounter:
          registered.counters = &Register(prometheus::BuildCounter(), row, registry_);
          break;
        case Type::kHistogram:
          registered.histograms = &Register(prometheus::BuildHistogram(), row, registry_);
          break;
      }
      registered_.push_back(registered);
    }
  }

  void Set(Metric metric, Values values, double value) override {
    const RegisteredRow& registered = Find(metric);
    registered.gauges->Add(LabelsOf(*registered.row, values)).Set(value);
  }

  void Add(Metric metric, Values values, double amount) override {
    const RegisteredRow& registered = Find(metric);
    registered.counters->Add(LabelsOf(*registered.row, values)).Increment(amount);
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
    const RegisteredRow& registered = Find(metric);
    const std::vector<double> buckets(registered.row->buckets.begin(),
                                      registered.row->buckets.end());
    return registered.histograms->Add(LabelsOf(*registered.row, values), buckets);
  }

  const RegisteredRow& Find(Metric metric) const {
    return registered_[static_cast<std::size_t>(metric)];
  }

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
  std::vector<RegisteredRow> registered_;
};

}  // namespace

std::shared_ptr<Registry> MakeRegistry(const BuildInfo& build) {
  auto registry = std::make_shared<PrometheusRegistry>();
  registry->Set(Metric::kBuildInfo, {build.version, build.commit}, 1);
  return registry;
}

}  // namespace nomad_harvester::metrics
