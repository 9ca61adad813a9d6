// SPDX-License-Identifier: Apache-2.0
// Whether the queries of a policy's checks answer, for `harvester check`. Private to module cli.
#ifndef NOMAD_HARVESTER_CLI_METRIC_QUERY_H_
#define NOMAD_HARVESTER_CLI_METRIC_QUERY_H_

#include <vector>

#include "nomad_harvester/runtime/context.h"
#include "nomad_harvester/scaling/check.h"

#include "operator_files.h"

namespace nomad_harvester::cli {

// One line for each query, id "metrics.query", in their order. Blocks for one request to each
// Prometheus query, as the agent's own plugin sends it (hashicorp/nomad-autoscaler:
// plugins/builtin/apm/prometheus/plugin/plugin.go), for ten seconds at most. Other sources are not
// asked: what the policy says of them is all that is told.
std::vector<scaling::CheckResult> CheckMetricQueries(const runtime::Context& context,
                                                     const std::vector<MetricQuery>& queries);

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_METRIC_QUERY_H_
