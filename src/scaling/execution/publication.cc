// SPDX-License-Identifier: Apache-2.0
#include "execution/publication.h"

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/scaling/step_spec.h"

#include "absl/cleanup/cleanup.h"
#include "execution/pass_task.h"

namespace nomad_harvester::scaling {
namespace {

// docs/configuration.md, publish_host: operators use these keys to spread jobs.
constexpr char kHostKey[] = "harvester_host";
constexpr char kZoneKey[] = "harvester_zone";

// A connected client replies within milliseconds. If a client hangs, Nomad replies after half a
// minute.
constexpr base::Duration kPublicationLimit = std::chrono::seconds(5);
constexpr base::Duration kZoneLimit = std::chrono::seconds(2);

}  // namespace

Effect Publish(const runtime::Context& reading, const runtime::Context& writing,
               const PoolDependencies& deps, const VmView& view, const Step& step) {
  const runtime::Context limited = reading.WithTimeout(kPublicationLimit);
  // A key or annotation without a value is removed.
  std::map<std::string, std::optional<std::string>> meta = {{kHostKey, std::nullopt},
                                                            {kZoneKey, std::nullopt}};
  std::optional<std::string> annotation;
  if (step.kind == StepKind::kPublishHost) {
    // If the host cannot be read, the zone is left out until it is known.
    const std::string zone =
        deps.hosts.ZoneOf(reading.WithTimeout(kZoneLimit), view.host).value_or("");
    harvester::PublishedHost published =
        view.vm->published_host.value_or(harvester::PublishedHost());
    published.node_id = step.node_id;
    published.host = view.host;
    published.zone = zone.empty() ? std::nullopt : std::optional(zone);
    meta = {{kHostKey, published.host}, {kZoneKey, published.zone}};
    annotation = harvester::ToAnnotation(published);
  }
  absl::Status posted = deps.clients.nomad_urgent->SetNodeMeta(limited, step.node_id, meta);
  if (!posted.ok()) return EffectOf(std::move(posted));
  return EffectOf(deps.vms
                      .Annotate(writing.WithTimeout(kPublicationLimit), view.vm->name,
                                view.vm->resource_version,
                                {{harvester::kPublishedHostAnnotation, std::move(annotation)}})
                      .status());
}

bool Publications::RunNext(State& state, const runtime::Context& reading) {
  Task task;
  {
    base::MutexLock lock(state.mutex);
    if (state.waiting.empty()) return false;
    task = std::move(state.waiting.front());
    state.waiting.pop_front();
    ++state.running;
  }
  const absl::Cleanup over = [&state, &task] {
    task = nullptr;  // it holds a turn of Hosts, which may be gone once it has ended
    base::MutexLock lock(state.mutex);
    --state.running;
    state.changed.NotifyAll();
  };
  Ended ended = task(reading);
  base::MutexLock lock(state.mutex);
  state.ended.push_back(std::move(ended));
  return true;
}

bool Publications::Submit(Task task) {
  {
    base::MutexLock lock(state_->mutex);
    state_->waiting.push_back(std::move(task));
  }
  const absl::Status submitted = deps_.executor.Submit(
      [state = state_, reading = reading_->context()] { RunNext(*state, reading); });
  if (submitted.ok()) return true;
  Task left;  // destroyed without the lock
  base::MutexLock lock(state_->mutex);
  // Each call of the executor takes the first task, so the last one is left without a call.
  left = std::move(state_->waiting.back());
  state_->waiting.pop_back();
  return false;
}

void Publications::Start(const runtime::Context& context,
                         const std::vector<const Decisions::Entry*>& due,
                         const std::shared_ptr<const Snapshot>& seen, base::MonoTime now) {
  wait_ = false;
  if (!reading_.has_value()) reading_.emplace(context);
  for (const Decisions::Entry* entry : due) {
    Retries::Key key = KeyOfStep(*entry);
    if (begun_.contains(key) || !deps_.backlog.retries.MayTry(key, now)) continue;
    const std::shared_ptr<void> turn = deps_.hosts.BeginPublication();
    wait_ = turn == nullptr;
    if (wait_) return;
    // The snapshot keeps the view.
    const bool begun = Submit([this, context, key, turn, seen, view = entry->view,
                               step = entry->step](const runtime::Context& reading) {
      return Ended{key, view->vm->name, step, Publish(reading, context, deps_, *view, step)};
    });
    // The executor has no room: the publication is due again in the next pass.
    if (!begun) return;
    begun_.insert(std::move(key));
  }
}

std::vector<Effect> Publications::TakeEnded() {
  std::vector<Ended> all;
  {
    base::MutexLock lock(state_->mutex);
    all.swap(state_->ended);
  }
  const base::MonoTime now = deps_.clock.Now();
  std::vector<Effect> effects;
  for (Ended& ended : all) {
    begun_.erase(ended.key);
    deps_.metrics().Troubled(ended.effect.verdict);
    if (ended.effect.status.ok()) deps_.Notify({.vm = ended.vm, .step = ended.step});
    if (deps_.backlog.retries.Record(ended.key, ended.effect, now)) Log(ended);
    effects.push_back(std::move(ended.effect));
  }
  return effects;
}

bool Publications::any() const {
  base::MutexLock lock(state_->mutex);
  return wait_ || state_->running > 0 || !state_->waiting.empty();
}

void Publications::Await() {
  if (!reading_.has_value()) return;
  while (RunNext(*state_, reading_->context())) {
  }
  AwaitRunning();
}

void Publications::End() {
  std::deque<Task> dropped;  // destroyed without the lock
  if (reading_.has_value()) reading_->Cancel(runtime::CancelReason::kNone);
  {
    base::MutexLock lock(state_->mutex);
    dropped.swap(state_->waiting);
  }
  AwaitRunning();
  reading_.reset();
  begun_.clear();
}

void Publications::AwaitRunning() {
  base::MutexLock lock(state_->mutex);
  state_->changed.Wait(state_->mutex,
                       [this]() NH_REQUIRES(state_->mutex) { return state_->running == 0; });
}

void Publications::Log(const Ended& ended) const {
  if (ended.effect.status.ok()) {
    deps_.logger.Info("A step that was refused or failed has succeeded",
                      {{"vm", ended.vm}, {"what", SpecOf(ended.step.kind).infinitive}});
    return;
  }
  deps_.Notify({.vm = ended.vm, .step = ended.step, .outcome = ended.effect.status});
  deps_.logger.Warn("A VM's host could not be published; trying again later",
                    {{"vm", ended.vm},
                     {"why", ended.step.reason},
                     {"node_id", ended.step.node_id},
                     {"error", ended.effect.status}});
}

}  // namespace nomad_harvester::scaling
