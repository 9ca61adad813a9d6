// SPDX-License-Identifier: Apache-2.0
// An operator who runs nomad-harvester gc and nomad-harvester status while the plugin exists.
#ifndef NOMAD_HARVESTER_TEST_SCENARIO_OPERATOR_H_
#define NOMAD_HARVESTER_TEST_SCENARIO_OPERATOR_H_

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "nomad_harvester/scaling/maintenance.h"

#include "harness.h"
#include "support/inline_executor.h"

namespace nomad_harvester::scenario {

inline constexpr base::Hold kAlways{.always = true};

class Operator {
 public:
  // `client`: the value of RequestInfo::client in its requests. `nomad`: as in NomadTransport.
  explicit Operator(Harness& h, const std::string& client = "", const std::string& nomad = "");

  // For the harness' pool, with its policy. The reported events are in `events` afterwards.
  scaling::Collection Collect();
  scaling::Collection Preview();
  scaling::Collection CollectWithoutPolicy();
  absl::StatusOr<scaling::Inspection> Inspect();
  // The first failure ends it. OK: every VM of the pool belongs to the Nomad that answers.
  absl::Status Adopt();
  absl::Status Pause(const std::optional<base::Hold>& hold);
  absl::StatusOr<std::set<scaling::PoolKey>> FindPools(const std::string& ns);

  // "delete web-abc", "delete-pvc web-abc-disk-0-xyz", "wait web-abc", "delete web-abc FAILED".
  std::vector<std::string> events;

  scaling::PoolKey key() const;

 private:
  scaling::ReconcileListener Listener();
  config::PoolPolicy Policy() const;

  Harness& h_;
  support::InlineExecutor executor_;
  const scaling::Maintenance maintenance_;
  const runtime::Context context_;
};

}  // namespace nomad_harvester::scenario

#endif  // NOMAD_HARVESTER_TEST_SCENARIO_OPERATOR_H_
