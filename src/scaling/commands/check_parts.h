// SPDX-License-Identifier: Apache-2.0
// The parts of Maintenance::Check, one per system. Private to module scaling.
#ifndef NOMAD_HARVESTER_SCALING_CHECK_PARTS_H_
#define NOMAD_HARVESTER_SCALING_CHECK_PARTS_H_

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "nomad_harvester/harvester/vm_store.h"
#include "nomad_harvester/http/curl_transport.h"
#include "nomad_harvester/nomad/client.h"
#include "nomad_harvester/scaling/maintenance.h"

#include "absl/status/status.h"
#include "execution/pool_dependencies.h"

namespace nomad_harvester::scaling {

// A system that does not answer the first request within this time counts as unreachable.
inline constexpr base::Duration kProbeLimit = std::chrono::seconds(10);

// Collects the results of one part and keeps them in the order of its preconditions, whatever the
// order in which they become known.
class CheckLines {
 public:
  // Adds the next precondition.
  void Expect(std::string id, std::string subject);
  // Sets the result of an expected precondition. Add() adds another line for it, with its own
  // subject.
  void Set(const std::string& id, CheckOutcome outcome, std::string text, std::string cure = "");
  void Add(const std::string& id, std::string subject, CheckOutcome outcome, std::string text,
           std::string cure);
  bool HasFailure() const;
  // Returns all results. Preconditions without a result are reported as skipped, with this reason.
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

// The server's clock and ours at the time of its reply.
struct ClockReading {
  base::WallTime server{};
  base::WallTime own{};
};

// The data of each system that checks comparing both systems need. Unset: unknown.
struct HarvesterFacts {
  std::optional<std::vector<harvester::VirtualMachine>> vms;  // members of the pool
  std::set<std::string> same_nodes;  // other pools with VMs that SharesNodes
  LeaseView lease;
  std::optional<ClockReading> clock;
};
struct NomadFacts {
  std::optional<std::vector<nomad::Node>> nodes;  // of the pool
  std::string region;                             // the configured one; empty: none
  std::uint64_t index = 0;                        // of the list of all nodes
  std::optional<std::string> cluster;             // its keys (nomad::NomadClient::ReadClusterKeys)
  absl::Status cluster_problem;                   // why they are not known, if they were asked for
  std::optional<ClockReading> clock;
};

// Both functions block for their requests and never fail. Independent requests run in parallel.
std::vector<CheckResult> CheckHarvester(const runtime::Context& context,
                                        const PoolDependencies& deps,
                                        const config::PoolPolicy& policy, HarvesterFacts* facts);
std::vector<CheckResult> CheckNomad(const runtime::Context& context, const PoolDependencies& deps,
                                    const config::PoolPolicy& policy, NomadFacts* facts);
// Compares the policy with the pool's existing VMs and nodes. Sends no request.
std::vector<CheckResult> CheckPool(const config::PoolPolicy& policy,
                                   const HarvesterFacts& harvester, const NomadFacts& nomad,
                                   base::WallTime now);

// True for a VM of another pool whose node the policy's identifiers select, too.
bool SharesNodes(const harvester::VirtualMachine& vm, const config::PoolPolicy& policy);
// What these pools cost each other.
std::string SameNodesText(const std::set<std::string>& pools);

// Sets the line of a system's address by the first reply, or that of its token if that cannot be
// read. Empty: the system answers; otherwise why everything else is skipped. `refuses`: the reply
// shows that the server checks who asks. `cure`: of an address that does not answer. `skip_key`
// switches the verification of the certificate off.
std::string CheckReply(const std::string& system, const http::CurlOptions& address,
                       const absl::Status& reply, bool refuses, const char* cure,
                       const std::string& skip_key, CheckLines* lines);
// The cure of an answer for which no address is to blame; null: of none.
const char* CureOfAnswer(int http_status);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_CHECK_PARTS_H_
