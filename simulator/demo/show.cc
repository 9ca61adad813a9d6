// SPDX-License-Identifier: Apache-2.0
#include "show.h"

#include <array>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <future>
#include <utility>

#include "nomad_harvester/base/status.h"

#include "nlohmann/json.hpp"

namespace nomad_harvester::demo {
namespace {

constexpr long kTickNanos = 100'000'000;
// Ticks for which the table is shown after a step, so that one can read it and the work converges.
constexpr int kLingerTicks = 15;
// How often the plugin is asked for the pool's state, and for how long.
constexpr int kStatusTicks = 10;
constexpr int kRestTicks = 900;

std::string Seconds(double seconds) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f s", seconds);
  return text.data();
}

}  // namespace

Show::Show(simulator::Cluster& cluster, Child& child, PluginClient& plugin, const sigset_t& signals)
    : cluster_(cluster), child_(child), plugin_(plugin), signals_(signals) {}

std::vector<std::string> Show::Run() {
  std::vector<std::string> problems = RunSteps();
  screen_.End();
  return problems;
}

std::vector<std::string> Show::RunSteps() {
  screen_.SetTitle("The plugin is asked for the first time: an empty pool");
  const absl::StatusOr<PluginClient::Answer> first = plugin_.Status();
  if (!first.ok()) return {"Status: " + base::Message(first.status())};
  if (first->count != 0) problems_.push_back("the pool is not empty at the start");

  RunStep({.title = "Scale to 5: VMs boot and join Nomad", .from = 0, .count = 5, .result = 5});
  RunJobs();
  RunStep({.title = "Scale to 2: three nodes are drained, their work moves",
           .from = 5,
           .count = 2,
           .result = 2});
  RunStep({.title = "Dry run of a scale to 4: it says what it would do, and does nothing",
           .from = 2,
           .count = 4,
           .dry_run = true,
           .result = 2});
  RunStep({.title = "Scale to 0: no node is left for the allocations, so they stop",
           .from = 2,
           .count = 0,
           .result = 0});

  if (Over()) return problems_;  // the pool was not brought down
  for (std::string& left : Leftovers(cluster_)) problems_.push_back(std::move(left));
  return problems_;
}

// Runs after all VMs are ready, so that every node gets some of the work.
void Show::RunJobs() {
  if (Over()) return;
  screen_.SetTitle("Two service jobs are run: seven allocations on five nodes");
  cluster_.RunJob({.id = "api", .count = 4, .cpu = 900});
  cluster_.RunJob({.id = "shop", .count = 3, .cpu = 900});
  Linger();
}

void Show::RunStep(const Step& step) {
  if (Over()) return;
  screen_.SetTitle(step.title);
  const int effects = cluster_.EffectCount();
  const auto start = std::chrono::steady_clock::now();
  const absl::Status scaled = ScaleAndWatch(step);
  if (scaled.ok()) AwaitRest(step);
  if (interrupted_) return;
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  Check(step, scaled, cluster_.EffectCount() - effects, took.count());
  Linger();
}

absl::Status Show::ScaleAndWatch(const Step& step) {
  grpc::ClientContext call;
  std::future<absl::Status> result = std::async(std::launch::async, [this, &call, &step] {
    return plugin_.Scale(call, step.from, step.count, step.dry_run);
  });
  while (result.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    if (!Tick()) call.TryCancel();
  }
  return result.get();
}

// The plugin has accepted the Scale: the rest is up to its background.
void Show::AwaitRest(const Step& step) {
  const auto wanted = static_cast<std::size_t>(step.result);
  for (int tick = 1; tick <= kRestTicks && Tick(); ++tick) {
    if (tick % kStatusTicks != 0) continue;
    const absl::StatusOr<PluginClient::Answer> answer = plugin_.Status();
    const bool rests = answer.ok() && answer->ready && answer->count == step.result;
    if (rests && cluster_.Vms().size() == wanted && cluster_.Nodes().size() == wanted) return;
  }
}

void Show::Check(const Step& step, const absl::Status& scaled, int effects, double seconds) {
  const std::string wanted = (step.dry_run ? "dry run " : "scale to ") + std::to_string(step.count);
  if (!scaled.ok()) problems_.push_back(wanted + ": " + scaled.ToString());
  const absl::StatusOr<PluginClient::Answer> answer = plugin_.Status();
  if (!answer.ok()) {
    problems_.push_back(wanted + ": Status: " + base::Message(answer.status()));
  } else if (answer->count != step.result || !answer->ready) {
    problems_.push_back(wanted + ": Status says " + std::to_string(answer->count) +
                        (answer->ready ? "" : ", not ready"));
  }
  const auto stand = static_cast<std::int64_t>(cluster_.Vms().size());
  if (stand != step.result) {
    problems_.push_back(wanted + ": " + std::to_string(stand) + " VMs exist");
  }
  if (step.dry_run && effects != 0) {
    problems_.push_back(wanted + ": it changed something, in " + std::to_string(effects) +
                        " requests");
  }
  std::array<char, 128> line{};
  std::snprintf(line.data(), line.size(), "%-12s %2d VMs exist %9s", wanted.c_str(),
                static_cast<int>(stand), Seconds(seconds).c_str());
  summary_.emplace_back(line.data());
  screen_.Update(RowsOf(cluster_), child_.TakeLines());
  screen_.Print(line.data());
}

bool Show::Tick() {
  cluster_.ApplyDue();
  screen_.Update(RowsOf(cluster_), child_.TakeLines());
  const timespec moment{.tv_sec = 0, .tv_nsec = kTickNanos};
  if (sigtimedwait(&signals_, nullptr, &moment) > 0) interrupted_ = true;
  return !interrupted_;
}

void Show::Linger() {
  for (int tick = 0; tick < kLingerTicks && !interrupted_; ++tick) {
    if (!Tick()) return;
  }
}

}  // namespace nomad_harvester::demo
