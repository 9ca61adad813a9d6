// SPDX-License-Identifier: Apache-2.0
// CPU time and memory of one answer to nodes-needed, for 1,000 nodes, 5,000 allocations and 500
// blocked evaluations and for ten times as many. The floor is what Nomad's client takes for the
// same lists alone. Prints medians; the exit code is 1 if a goal is missed.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nomad_harvester/base/json_fields.h"
#include "nomad_harvester/demand/service.h"
#include "nomad_harvester/nomad/client.h"

#include "nlohmann/json.hpp"
#include "support/fake_clock.h"
#include "support/inline_executor.h"
#include "support/recording_sink.h"
#include "support/seeded_random.h"

namespace nomad_harvester::demand {
namespace {

using nlohmann::json;

constexpr double kOverFloor = 4;  // at most
constexpr std::array<std::size_t, 2> kNodes = {1'000, 10'000};
constexpr std::size_t kAllocationsOfNode = 5;
constexpr std::size_t kNodesOfEvaluation = 2;
constexpr int kRounds = 5;
constexpr std::size_t kPiece = std::size_t{1} << 16;
constexpr char kQuery[] = "nodes-needed node_class=batch";

void Check(bool as_expected, const char* what) {
  if (as_expected) return;
  std::fprintf(stderr, "the world is not as expected: %s\n", what);
  std::exit(2);
}

// As long as a UUID.
std::string Uuid(std::string_view kind, std::size_t number) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%.4s%04zx-c0de-4000-8000-%012zx", kind.data(),
                number & 0xffff, number);
  return text.data();
}

json Resources(const char* cpu, std::size_t mhz, std::size_t mib) {
  return {{"Cpu", {{cpu, mhz}}}, {"Memory", {{"MemoryMB", mib}}}};
}

json Node(std::size_t i, bool full) {
  json node = {{"ID", Uuid("node", i)},
               {"Name", "batch-" + std::to_string(i)},
               {"Address", "10.0.0.1"},
               {"Datacenter", "dc1"},
               {"NodeClass", "batch"},
               {"NodePool", "default"},
               {"Version", "1.10.5"},
               {"Drain", false},
               {"SchedulingEligibility", "eligible"},
               {"Status", "ready"},
               {"Drivers", {{"docker", {{"Detected", true}, {"Healthy", true}}}}},
               {"NodeResources", Resources("CpuShares", 4000, 8192)},
               {"ReservedResources", Resources("CpuShares", 0, 0)},
               {"CreateIndex", 100 + i},
               {"ModifyIndex", 100 + i}};
  node["NodeResources"]["Disk"] = {{"DiskMB", 50'000}};
  if (!full) return node;
  json attributes = {{"kernel.name", "linux"}, {"unique.hostname", node["Name"]}};
  for (int k = 0; k < 80; ++k) {
    attributes["platform.attribute." + std::to_string(k)] = "value " + std::to_string(k);
  }
  node["Attributes"] = std::move(attributes);
  return node;
}

json Allocation(std::size_t i) {
  return {{"ID", Uuid("aloc", i)},
          {"Name", "running.work[0]"},
          {"Namespace", "default"},
          {"NodeID", Uuid("node", i / kAllocationsOfNode)},
          {"NodeName", "batch-" + std::to_string(i / kAllocationsOfNode)},
          {"JobID", "running-" + std::to_string(i % 100)},
          {"JobType", "batch"},
          {"TaskGroup", "work"},
          {"ClientStatus", "running"},
          {"DesiredStatus", "run"},
          {"AllocatedResources",
           {{"Tasks", {{"main", Resources("CpuShares", 100 * (6 + i % 3), 1024)}}},
            {"Shared", {{"DiskMB", 300}}}}}};
}

std::string WaitingJob(std::size_t i) { return "waiting-" + std::to_string(i); }

json Evaluation(std::size_t i) {
  return {{"ID", Uuid("eval", i)},
          {"Namespace", "default"},
          {"JobID", WaitingJob(i)},
          {"Type", "batch"},
          {"Status", "blocked"},
          {"Priority", 50},
          {"CreateIndex", 1'000'000 + i},
          {"ModifyIndex", 1'000'000 + i},
          {"FailedTGAllocs", {{"work", {{"CoalescedFailures", 2}, {"NodesEvaluated", 10'000}}}}}};
}

json Job(const std::string& id) {
  return {{"ID", id},
          {"Namespace", "default"},
          {"Type", "batch"},
          {"Status", "running"},
          {"Stop", false},
          {"Priority", 50},
          {"NodePool", "default"},
          {"JobModifyIndex", 7},
          {"Datacenters", {"*"}}};
}

// Of a sixth to a half of a node, each one in its own size. Nodes have less: Nomad would place it.
json FullJob(const std::string& id) {
  const std::size_t i = std::strtoul(id.substr(id.find('-') + 1).c_str(), nullptr, 10);
  json job = Job(id);
  json resources = {{"CPU", 650 + i * 37 % 1350}, {"MemoryMB", 512 + i * 61 % 3584}};
  job["Constraints"] = {
      {{"LTarget", "${attr.kernel.name}"}, {"RTarget", "linux"}, {"Operand", "="}}};
  job["TaskGroups"] = {
      {{"Name", "work"},
       {"Count", 3},
       {"EphemeralDisk", {{"SizeMB", 300}}},
       {"Tasks", {{{"Name", "main"}, {"Driver", "docker"}, {"Resources", std::move(resources)}}}}}};
  return job;
}

template <typename Make>
std::string ListOf(std::size_t count, const Make& make) {
  std::string text = "[";
  for (std::size_t i = 0; i < count; ++i) text += (i == 0 ? "" : ",") + make(i).dump();
  return text + "]";
}

// A Nomad that does nothing but reply.
class Canned final : public http::HttpTransport {
 public:
  explicit Canned(std::size_t nodes)
      : nodes_(ListOf(nodes, [](std::size_t i) { return Node(i, false); })),
        allocations_(ListOf(nodes * kAllocationsOfNode, Allocation)),
        evaluations_(ListOf(nodes / kNodesOfEvaluation, Evaluation)),
        jobs_(ListOf(100 + nodes / kNodesOfEvaluation, [](std::size_t i) {
          return Job(i < 100 ? "running-" + std::to_string(i) : WaitingJob(i - 100));
        })) {}

  absl::StatusOr<http::HttpResponse> Send(const runtime::Context& /*context*/,
                                          const http::HttpRequest& request) override {
    const std::string path = request.target.substr(0, request.target.find('?'));
    const std::string last = path.substr(path.rfind('/') + 1);
    http::HttpResponse response{.status = 200, .headers = {{"X-Nomad-Index", "9"}}};
    if (request.list != nullptr) {
      std::string_view body = last == "nodes"         ? nodes_
                              : last == "allocations" ? allocations_
                              : last == "evaluations" ? evaluations_
                                                      : jobs_;
      for (; !body.empty(); body.remove_prefix(std::min(kPiece, body.size()))) {
        request.list->Write(body.substr(0, kPiece));
      }
    } else if (path.starts_with("/v1/node/")) {
      response.body =
          Node(std::strtoul(last.substr(last.rfind('-') + 1).c_str(), nullptr, 16), true).dump();
    } else if (path.starts_with("/v1/job/")) {
      response.body = FullJob(last).dump();
    } else {
      response.body = json({{"AccessorID", "acls-disabled"}}).dump();
    }
    return response;
  }

 private:
  const std::string nodes_;
  const std::string allocations_;
  const std::string evaluations_;
  const std::string jobs_;
};

double CpuMs() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

template <typename Work>
double Timed(const Work& work) {
  const double began = CpuMs();
  work();
  return CpuMs() - began;
}

// See proc_pid_status(5).
std::size_t PeakMiB() {
  std::ifstream file("/proc/self/status");
  std::string word;
  std::size_t kib = 0;
  while (file >> word && word != "VmHWM:") {
  }
  Check(static_cast<bool>(file >> kib), "VmHWM is known");
  return kib / 1024;
}
// See proc_pid_clear_refs(5).
void ResetPeak() { std::ofstream("/proc/self/clear_refs") << "5"; }

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Costs {
  double floor = 0;
  double first = 0;
  double next = 0;
  std::size_t before_mib = 0;  // the lists' texts
  std::size_t peak_mib = 0;    // of all answers
};

Costs Measure(std::size_t nodes) {
  const auto nomad = std::make_shared<Canned>(nodes);
  support::FakeClock clock;
  support::InlineExecutor executor;
  DemandServiceOptions options;
  options.clock = &clock;
  options.random = support::MakeSeededRandom(1);
  options.logger = log::Logger(std::make_shared<support::RecordingSink>(), log::Level::kError);
  options.transports = [&](const config::PluginConfig&) {
    return http::RawTransports{.nomad = nomad};
  };
  options.executor = &executor;
  const auto service = MakeDemandService(std::move(options));
  Check(service->SetConfig({{"nomad_address", "http://nomad:4646"}}).ok(), "a configuration");
  const runtime::Context context = runtime::Context::Background(clock);
  const auto ask = [&] {
    clock.Advance(std::chrono::seconds(10));
    const auto answer = service->Query(context, kQuery);
    Check(answer.ok(), "an answer");
    Check(answer->count > static_cast<std::int64_t>(nodes), "some work needs new nodes");
  };
  const nomad::NomadClient client(nomad, {});
  Costs costs;
  ResetPeak();
  costs.before_mib = PeakMiB();
  costs.first = Timed(ask);
  std::vector<double> floor;
  std::vector<double> next;
  for (int round = 0; round < kRounds; ++round) {
    next.push_back(Timed(ask));
    floor.push_back(Timed([&] {
      Check(client.ListBlockedEvaluations(context).ok() && client.ListJobs(context).ok() &&
                client.ListPlacements(context).ok() &&
                client.ListBlockedEvaluations(context).ok() && client.ListNodes(context).ok(),
            "lists");
    }));
  }
  costs.floor = Median(floor);
  costs.next = Median(next);
  costs.peak_mib = PeakMiB();
  return costs;
}

int Run() {
  std::vector<Costs> all;
  for (const std::size_t nodes : kNodes) all.push_back(Measure(nodes));
  bool met = true;
  std::printf(
      "nodes   lists alone, ms   first answer, ms   next answer, ms   ÷ lists (at most %.0f)   "
      "memory, MiB\n",
      kOverFloor);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Costs& costs = all[i];
    met = met && costs.next <= kOverFloor * costs.floor;
    std::printf("%-8zu%15.0f%19.0f%18.0f%26.1f%14zu\n", kNodes[i], costs.floor, costs.first,
                costs.next, costs.next / costs.floor, costs.peak_mib - costs.before_mib);
  }
  std::printf("growth for ten times the world: lists %.1f, next answer %.1f%s\n",
              all[1].floor / all[0].floor, all[1].next / all[0].next,
              met ? "" : "; the goal is missed");
  return met ? 0 : 1;
}

}  // namespace
}  // namespace nomad_harvester::demand

int main() { return nomad_harvester::demand::Run(); }
