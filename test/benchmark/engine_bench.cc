// SPDX-License-Identifier: Apache-2.0
// CPU time of deciding, on synthetic lists: what a Status does between the decoded lists and its
// reply, and what a pass of the loop does between them and its first act.
// The argument is a command: COMMAND VMS NODES prints the CPU, in ms, of a whole Status of another
// plugin. It runs between the rounds. Prints medians; the exit code is 1 if a goal is missed.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nomad_harvester/nodepool/full_node_cache.h"
#include "nomad_harvester/scaling/observer.h"
#include "nomad_harvester/scaling/status_report.h"

namespace nomad_harvester::scaling {
namespace {

constexpr double kShareOfPeer = 1.0 / 20;  // at most
constexpr double kGrowth = 11;             // at most, for ten times the world
constexpr int kRounds = 9;                 // after one that warms up
constexpr int kPeerRounds = 3;
constexpr std::array<const char*, 3> kDrained = {"none", "a tenth", "all"};
constexpr std::array<std::size_t, 3> kEvery = {0, 10, 1};
constexpr std::array<std::size_t, 2> kVms = {1'000, 10'000};  // and five times as many nodes
constexpr std::array<const char*, 2> kCalls = {"Status", "pass"};

const base::WallTime kNow = base::ParseRfc3339("2026-03-01T12:00:00Z").value();
constexpr char kStartedAt[] = "2026-02-01T11:59:00.123456789Z";

// A process that has been running, and the lists that it decodes, in the order of the servers: VMs
// by name, nodes by ID.
struct World {
  std::vector<harvester::VirtualMachine> vms;
  std::vector<nomad::Node> nodes;
  std::vector<std::string> addresses;  // of the VMs' instances
  nodepool::FullNodeCache cache;
  ObserverMemory memory;
};

// As long as a UUID, and in no order.
std::string Uuid(std::size_t number) {
  std::uint64_t x = (number + 1) * 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%016zx-%019zu", static_cast<std::size_t>(x), number);
  return text.data();
}

std::string AddressOf(std::size_t i) {
  return "10." + std::to_string(i >> 16) + "." + std::to_string(i >> 8 & 255) + "." +
         std::to_string(i & 255);
}

harvester::VirtualMachine VmNumber(std::size_t i, bool drained) {
  harvester::VirtualMachine vm;
  vm.ns = "default";
  vm.name = "pool-a-" + std::to_string(100'000 + i);
  vm.uid = Uuid(i);
  vm.firmware_uuid = Uuid(1'000'000 + i);
  vm.pool = "pool-a";
  vm.labels = {{harvester::kPoolLabel, vm.pool}};
  vm.self = harvester::SelfValue(vm.name, vm.firmware_uuid);
  vm.created_at = kNow - std::chrono::hours(100);
  vm.join_timeout = harvester::JoinTimeout{.limit = std::chrono::minutes(15)};
  vm.nodes = harvester::NodesRecord{.region = "global", .node_class = "harvester", .index = 100};
  vm.joined_at = kNow - std::chrono::hours(99);
  vm.joined_node_id = Uuid(2'000'000 + i);
  if (drained) vm.rolled_back = Uuid(3'000'000 + i) + "@" + kStartedAt;
  vm.printable_status = "Running";
  vm.ready = vm.instance_exists = true;
  vm.claim_names = {vm.name + "-disk-0"};
  return vm;
}

// Nodes beyond the VMs' are those of other clients; drained ones were VMs of another pool.
nomad::Node NodeNumber(std::size_t i, bool of_vm, bool drained) {
  nomad::Node node;
  node.id = Uuid(2'000'000 + i);
  node.name = (of_vm ? "pool-a-" : "client-") + std::to_string(100'000 + i);
  node.address = AddressOf(i);
  node.datacenter = "dc1";
  node.node_class = of_vm ? "harvester" : "other";
  node.node_pool = "default";
  node.status = nomad::NodeStatus::kReady;
  node.eligible = true;
  node.create_index = node.modify_index = 200 + i;
  if (!drained) return node;
  node.last_drain =
      nomad::LastDrain{.status = nomad::DrainStatus::kComplete,
                       .started_at = kStartedAt,
                       .updated_at = kNow - std::chrono::hours(90),
                       .meta = nodepool::ToMeta({.action = Uuid(3'000'000 + i),
                                                 .vm = node.name,
                                                 .vm_uid = Uuid(i),
                                                 .pool = of_vm ? "default/pool-a" : "other/gone"})};
  return node;
}

// `every`: one node in so many was drained by us; 0: none.
void Fill(std::size_t vms, std::size_t every, World* world) {
  for (std::size_t i = 0; i < 5 * vms; ++i) {
    const bool drained = every != 0 && i % every == 0;
    world->nodes.push_back(NodeNumber(i, i < vms, drained));
    if (i >= vms) continue;
    world->vms.push_back(VmNumber(i, drained));
    world->addresses.push_back(AddressOf(i));
  }
  std::sort(world->nodes.begin(), world->nodes.end(),
            [](const nomad::Node& a, const nomad::Node& b) { return a.id < b.id; });
}

double CpuMs() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

void Check(bool as_expected, const char* what) {
  if (as_expected) return;
  std::fprintf(stderr, "the world is not as expected: %s\n", what);
  std::exit(2);
}

// One Status (service.cc), or one pass of the loop (observer.cc, reconciler.cc). Returns its CPU.
double Decide(bool pass, World* world) {
  config::PoolPolicy policy;
  policy.pool = policy.name_prefix = "pool-a";
  policy.node_class = "harvester";
  auto vms = world->vms;  // copied in their order, as decoded ones lie in memory
  auto nodes = world->nodes;
  auto addresses = world->addresses;
  const double began = CpuMs();
  Observation observation = EmptyObservation("global", "", policy);
  observation.now = kNow;
  observation.nomad = absl::OkStatus();
  observation.nomad_index = 1'000'000;
  SetVms(std::make_shared<const std::vector<harvester::VirtualMachine>>(std::move(vms)),
         &observation);
  if (pass) world->cache.Keep(nodes);
  for (nomad::Node& node : nodes) world->cache.Complete(&node);
  observation.SetNodes(std::move(nodes));
  CheckIndex(&observation);
  for (std::size_t i = 0; pass && i < observation.vms.size(); ++i) {
    observation.vms[i].addresses = {std::move(addresses[i])};
    observation.vms[i].instance_runs = true;
  }
  Link(&observation);
  world->memory.Apply(base::MonoTime{}, &observation);
  if (pass) Check(NodesToReadInFull(observation).empty(), "every node is known");
  const PoolSnapshot snapshot{.key = {.ns = "default", .pool = "pool-a"},
                              .seen = std::make_shared<const Snapshot>(std::move(observation)),
                              .policy = policy,
                              .action = harvester::LeaseAction{}};
  if (!pass) {
    Check(!snapshot.mass_loss().alarming, "no mass loss");
    const StatusReport report = ReportStatus(snapshot, {});
    Check(report.status.ready && report.status.count == static_cast<std::int64_t>(addresses.size()),
          "the pool is ready");
    for (const OrphanedNode& gone : snapshot.orphaned_nodes()) {  // as for the pools to resume
      Check(!gone.mark.pool.starts_with("default/"), "the VMs of the pool exist");
    }
  }
  const Decisions decisions(snapshot);
  Check(!NeedsResumption(decisions), "there is nothing to do");
  return CpuMs() - began;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double RunPeer(const std::string& peer, std::size_t vms, std::size_t nodes) {
  const std::string command = peer + " " + std::to_string(vms) + " " + std::to_string(nodes);
  FILE* out = popen(command.c_str(), "r");  // NOLINT(concurrency-mt-unsafe): one thread
  double ms = 0;
  Check(out != nullptr && std::fscanf(out, "%lf", &ms) == 1 && pclose(out) == 0, "the peer runs");
  return ms;
}

int Run(const std::string& peer) {
  std::map<std::array<std::size_t, 2>, World> worlds;  // drained, size
  std::map<std::size_t, std::vector<double>> of_peer;
  std::map<std::array<std::size_t, 3>, std::vector<double>> of_ours;  // call, drained, size
  for (int round = 0; round <= kRounds; ++round) {
    for (std::size_t size = 0; size < kVms.size(); ++size) {
      for (std::size_t drained = 0; drained < kEvery.size(); ++drained) {
        World& world = worlds[{drained, size}];
        if (round == 0) Fill(kVms[size], kEvery[drained], &world);
        for (std::size_t call = 0; call < kCalls.size(); ++call) {
          const double ms = Decide(call == 1, &world);
          if (round > 0) of_ours[{call, drained, size}].push_back(ms);
        }
      }
      if (!peer.empty() && round < kPeerRounds) {
        of_peer[size].push_back(RunPeer(peer, kVms[size], 5 * kVms[size]));
      }
    }
  }
  bool met = true;
  const auto judge = [&met](bool this_one) {
    met = met && this_one;
    return this_one ? "" : " missed";
  };
  std::printf("call    drained      1k, ms   10k, ms  growth (wanted: at most %.0f)", kGrowth);
  std::puts(peer.empty() ? "" : "   of the peer's Status (at most 1/20)");
  for (const auto& entry : of_ours) {
    const auto [call, drained, size] = entry.first;
    if (size != 0) continue;
    const double small = Median(entry.second);
    const double large = Median(of_ours.at({call, drained, 1}));
    std::printf("%-8s%-9s%10.2f%10.2f%8.1f%s", kCalls[call], kDrained[drained], small, large,
                large / small, judge(large <= kGrowth * small));
    for (const auto& [of_size, samples] : of_peer) {
      const double share = (of_size == 0 ? small : large) / Median(samples);
      std::printf("   1/%.0f%s", 1 / share, judge(share <= kShareOfPeer));
    }
    std::puts("");
  }
  for (const auto& [size, samples] : of_peer) {
    std::printf("peer, %zu VMs: %.0f ms\n", kVms[size], Median(samples));
  }
  return met ? 0 : 1;
}

}  // namespace
}  // namespace nomad_harvester::scaling

int main(int argc, char** argv) { return nomad_harvester::scaling::Run(argc > 1 ? argv[1] : ""); }
