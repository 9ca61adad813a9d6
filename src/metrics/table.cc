// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstddef>
#include <iterator>

#include "nomad_harvester/metrics/registry.h"

namespace nomad_harvester::metrics {
namespace {

constexpr std::array<std::string_view, 2> kBuild = {"version", "commit"};
constexpr std::array<std::string_view, 1> kPool = {"pool"};
constexpr std::array<std::string_view, 2> kPoolState = {"pool", "state"};
constexpr std::array<std::string_view, 2> kPoolReason = {"pool", "reason"};
constexpr std::array<std::string_view, 2> kPoolPhase = {"pool", "phase"};
constexpr std::array<std::string_view, 3> kPoolOutcome = {"pool", "direction", "outcome"};
constexpr std::array<std::string_view, 2> kPoolCause = {"pool", "cause"};
constexpr std::array<std::string_view, 2> kPoolBy = {"pool", "by"};
constexpr std::array<std::string_view, 3> kRequest = {"api", "verb", "code"};
constexpr std::array<std::string_view, 1> kApi = {"api"};
constexpr std::array<std::string_view, 1> kClass = {"class"};
constexpr std::array<std::string_view, 2> kPoolVerdict = {"pool", "verdict"};
constexpr std::array<std::string_view, 1> kOutcome = {"outcome"};

// A request's limit is 10 s by default.
constexpr std::array<double, 11> kOfRequests = {.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10};
// A Scale is accepted within a minute (rule C16).
constexpr std::array<double, 9> kOfScales = {.1, .25, .5, 1, 2.5, 5, 10, 30, 60};
// From a simulated VM's start to a long drain.
constexpr std::array<double, 13> kOfActions = {1,   2,   5,   10,   20,   30,  60,
                                               120, 300, 600, 1800, 3600, 7200};
// From a minute to a month.
constexpr std::array<double, 9> kOfLives = {60,    600,    3600,   14400,  43200,
                                            86400, 259200, 604800, 2592000};

constexpr MetricRow kTable[] = {
    {Metric::kBuildInfo, Type::kGauge, "nomad_harvester_build_info", kBuild,
     "1, with the version and the commit of the plugin that is running."},
    {Metric::kVms, Type::kGauge, "nomad_harvester_vms", kPoolState,
     "VMs that carry the pool's label, by their state."},
    {Metric::kVmCreated, Type::kCounter, "nomad_harvester_vm_created_total", kPoolReason,
     "VMs that were created; resumed: the name was left over from an interrupted action."},
    {Metric::kVmTerminated, Type::kCounter, "nomad_harvester_vm_terminated_total", kPoolReason,
     "VMs whose deletion Harvester has accepted, by why they were marked."},
    {Metric::kVmStart, Type::kHistogram, "nomad_harvester_vm_start_seconds", kPoolPhase,
     "How long each phase of a new VM's start took, once it had joined Nomad.", kOfActions},
    {Metric::kDrain, Type::kHistogram, "nomad_harvester_drain_seconds", kPool,
     "From the mark of a VM to its deletion after the drain of its node.", kOfActions},
    {Metric::kVmLifetime, Type::kHistogram, "nomad_harvester_vm_lifetime_seconds", kPool,
     "Age of the VMs that the plugin deleted.", kOfLives},
    {Metric::kScale, Type::kHistogram, "nomad_harvester_scale_seconds", kPoolOutcome,
     "How long calls of Scale took; dry runs do not count.", kOfScales},
    {Metric::kBackOff, Type::kGauge, "nomad_harvester_backoff_seconds", kPoolCause,
     "For how long the pool waits, from its last Status on, before it tries again what failed."},
    {Metric::kRoom, Type::kGauge, "nomad_harvester_room", kPool,
     "For how many more VMs Harvester's hosts have room now, at most 1000."},
    {Metric::kDrifted, Type::kGauge, "nomad_harvester_drifted", kPool,
     "VMs that were made from another template than that of the last growth, replacement or "
     "scale-in, 0 before one; nomad-harvester status compares with the policy."},
    {Metric::kToReplace, Type::kGauge, "nomad_harvester_to_replace", kPool,
     "VMs that wait to be replaced by new ones."},
    {Metric::kReplacementStopped, Type::kGauge, "nomad_harvester_replacement_stopped", kPool,
     "1 while VMs wait because a new one was not ready in time, else 0."},
    {Metric::kLeftovers, Type::kGauge, "nomad_harvester_leftovers", kPool,
     "VMs that are gone and left something that is not cleaned up yet."},
    {Metric::kUnclaimed, Type::kGauge, "nomad_harvester_unclaimed", kPool,
     "1 while a removal of this pool is unfinished and this agent has no policy for it, else 0."},
    {Metric::kProtected, Type::kGauge, "nomad_harvester_protected", kPoolBy,
     "VMs that may not be removed, by what protects them."},
    {Metric::kLeaseHeld, Type::kGauge, "nomad_harvester_lease_held", kPool,
     "1 while this process holds the pool's Lease, else 0."},
    {Metric::kObserved, Type::kGauge, "nomad_harvester_observed_timestamp_seconds", kPool,
     "When the pool was last observed, by the API server's clock, in seconds since 1970."},
    {Metric::kApiRequest, Type::kHistogram, "nomad_harvester_api_request_seconds", kRequest,
     "How long requests to the two APIs took; each attempt counts.", kOfRequests},
    {Metric::kApiRetries, Type::kCounter, "nomad_harvester_api_retries_total", kApi,
     "Attempts of requests that followed one that had failed."},
    {Metric::kErrors, Type::kCounter, "nomad_harvester_errors_total", kClass,
     "What went wrong, by its class."},
    {Metric::kNodesNeeded, Type::kGauge, "nomad_harvester_nodes_needed", kPool,
     "Nodes that the pool's work needs, as the apm block last answered."},
    {Metric::kPendingAllocations, Type::kGauge, "nomad_harvester_pending_allocations", kPoolVerdict,
     "Allocations for which Nomad has found no place, by what a node of the pool could do for "
     "them."},
    {Metric::kDemandRead, Type::kGauge, "nomad_harvester_demand_read_timestamp_seconds", kPool,
     "When Nomad was read for the last answer, in seconds since 1970."},
    {Metric::kQueries, Type::kCounter, "nomad_harvester_queries_total", kOutcome,
     "Queries to the apm block by their outcome; refused: the query itself is wrong."},
};
static_assert(std::size(kTable) == static_cast<std::size_t>(Metric::kEnd), "a row for each metric");

}  // namespace

std::span<const MetricRow> MetricTable() { return kTable; }

}  // namespace nomad_harvester::metrics
