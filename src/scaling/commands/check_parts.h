// SPDX-License-Identifier: Apache-2.0
// The parts of Maintenance::Check, by system. Private to module scaling.
#ifndef NOMAD_HARVESTER_SCALING_CHECK_PARTS_H_
#define NOMAD_HARVESTER_SCALING_CHECK_PARTS_H_

#include <optional>
#include <string>
#include <vector>

#include "nomad_harvester/harvester/vm_store.h"
#include "nomad_harvester/nomad/client.h"
#include "nomad_harvester/scaling/check.h"

#include "execution/pool_dependencies.h"

namespace nomad_harvester::scaling {

// A system that does not answer the first request for so long is out of reach.
inline constexpr base::Duration kProbeLimit = std::chrono::seconds(10);

// The results of one part in the order of its preconditions, however late each becomes known.
class CheckLines {
 public:
  // The next precondition.
  void Expect(std::string id, std::string subject);
  // Of one that is expected. A second result of the same precondition is one more line, with a
  // subject of its own.
  void Set(const std::string& id, CheckOutcome outcome, std::string text, std::string cure = "");
  void Add(const std::string& id, std::string subject, CheckOutcome outcome, std::string text,
           std::string cure);
  // Each that has no result yet is skipped, for this reason.
  std::vector<CheckResult> Take(const std::string& why_skipped) &&;

 private:
  struct Slot {
    std::string id;
    std::string subject;
    std::vector<CheckResult> results{};
  };
  Slot& Find(const std::string& id);

  std::vector<Slot> slots_;
};

// The server's clock when it replied, and ours.
struct ClockReading {
  base::WallTime server{};
  base::WallTime own{};
};

// What one system told that checks of both use; unset: not known.
struct HarvesterFacts {
  std::optional<std::vector<harvester::VirtualMachine>> vms;  // members of the pool
  std::string lease_cluster;  // the keys of Nomad on the pool's Lease; empty: none, or not known
  std::optional<ClockReading> clock;
};
struct NomadFacts {
  std::optional<std::vector<nomad::Node>> nodes;  // of the pool
  std::string region;                             // the configured one; empty: none
  std::optional<std::string> cluster;             // its keys (nomad::NomadClient::ReadClusterKeys)
  std::optional<ClockReading> clock;
};

// Both block for their requests, of which the independent ones are sent side by side, and do not
// fail.
std::vector<CheckResult> CheckHarvester(const runtime::Context& context,
                                        const PoolDependencies& deps,
                                        const config::PoolPolicy& policy, HarvesterFacts* facts);
std::vector<CheckResult> CheckNomad(const runtime::Context& context, const PoolDependencies& deps,
                                    const config::PoolPolicy& policy, NomadFacts* facts);
// What the pool has today says of the policy. No request.
std::vector<CheckResult> CheckPool(const config::PoolPolicy& policy,
                                   const HarvesterFacts& harvester, const NomadFacts& nomad);

// How an address is reached: the outcome if it answers, and what to say of it.
struct AddressView {
  std::string url;  // without credentials
  bool encrypted = false;
  bool verified = false;
};
AddressView ViewOf(const absl::StatusOr<http::CurlOptions>& address);
// The line of a system that answered. `skip_key`: that switches the verification off.
void PassAddress(const AddressView& view, const std::string& id, const std::string& skip_key,
                 CheckLines* lines);

// Why a system cannot be reached, with its address.
std::string WithAddress(const AddressView& view, const absl::Status& status);

// Runs them side by side.
void RunAll(const runtime::Context& context, const PoolDependencies& deps,
            const std::vector<std::function<void()>>& tasks);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_CHECK_PARTS_H_
