// SPDX-License-Identifier: Apache-2.0
#include "rules/tracker.h"

#include <algorithm>
#include <utility>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/base/text.h"
#include "nomad_harvester/kube/error.h"
#include "nomad_harvester/nodepool/drain.h"
#include "nomad_harvester/scaling/step_spec.h"

#include "rules/back_off.h"

namespace nomad_harvester::scaling {
namespace {

using Entry = Decisions::Entry;

// How long to wait for a deleted VM's volumes and Secret, after its grace period.
constexpr base::Duration kLeftoversMargin = std::chrono::minutes(2);

void Fail(absl::Status error, VmOutcome* outcome) {
  outcome->state = OutcomeState::kFailed;
  outcome->error = std::move(error);
}

// The refusal of the VM's next step, if it has lasted; otherwise OK.
absl::Status RefusedForGood(const Entry& entry, const Retries& retries, base::MonoTime now) {
  const Retries::Key key(StepName(entry.step.kind), entry.view->vm->uid);
  return retries.IsRefusedForGood(key, now) ? retries.LastOf(key) : absl::OkStatus();
}

// The refusal of a removal step, if it has lasted, even if the next step is a different one;
// otherwise OK.
absl::Status RemovalRefused(const Entry& entry, const Retries& retries, base::MonoTime now) {
  for (const StepKind kind : {StepKind::kStartDrain, StepKind::kDelete, StepKind::kRollBack}) {
    const Retries::Key key(StepName(kind), entry.view->vm->uid);
    if (retries.IsRefusedForGood(key, now)) return retries.LastOf(key);
  }
  return absl::OkStatus();
}

// Names the step that an outcome waits for, and how long it has failed.
std::string TextOf(const Entry& entry, const Retries& retries, base::MonoTime now) {
  const Retries::Key key(StepName(entry.step.kind), entry.view->vm->uid);
  const absl::Status last = retries.LastOf(key);
  if (last.ok()) return entry.step.reason;
  return entry.step.reason + "; it has failed for " +
         base::FormatGoDuration(
             std::chrono::floor<std::chrono::seconds>(retries.FailingFor(key, now))) +
         ": " + base::Message(last);
}

absl::Status Stuck(const harvester::VirtualMachine& vm) {
  return base::Unavailable("the VM is stuck: it has been terminating for more than " +
                           base::FormatGoDuration(DeletionTimeout(vm)) +
                           "; its finalizers are Harvester's to remove");
}

}  // namespace

bool MayRepeatCreation(const Effect& effect) {
  const absl::Status& status = effect.status;
  const bool is_open = effect.verdict == Verdict::kConflict || effect.verdict == Verdict::kFailed;
  if (!is_open || kube::IsAlreadyExists(status)) return false;
  return kube::GetKubeError(status).has_value() || absl::IsUnavailable(status) ||
         absl::IsDeadlineExceeded(status);
}

std::string CauseOfBroken(const VmView& view) {
  return std::string(view.start_failure.has_value() ? cause::kStart : cause::kJoin);
}

void AddLeftover(const std::string& vm, const std::string& what, const Retries& retries,
                 const Retries::Key& key, base::MonoTime now, Leftovers* leftovers) {
  const bool refused_for_good = retries.IsRefusedForGood(key, now);
  const bool in_trouble = !retries.LastOf(key).ok();
  const auto [entry, is_new] =
      leftovers->try_emplace(vm, Leftover{what, refused_for_good, in_trouble});
  if (is_new) return;
  Leftover& leftover = entry->second;
  leftover.what += ", " + what;
  leftover.refused_for_good = leftover.refused_for_good && refused_for_good;
  leftover.in_trouble = leftover.in_trouble && in_trouble;
}

Tracker::Tracker(Options options, const ScalePlan& plan)
    : options_(std::move(options)), reserve_(plan.reserve), passed_over_(plan.passed_over) {
  for (const std::string& vm : plan.cancel_removals) {
    outcomes_[vm] = {.goal = Goal::kTakeBack, .action = options_.action_id};
  }
  for (const PlannedRemoval& removal : plan.remove) {
    outcomes_[removal.vm] = {.goal = Goal::kRemove, .node_id = removal.node_id};
  }
  for (const PlannedCreation& creation : plan.create) {
    outcomes_[creation.name] = {
        .goal = Goal::kMake, .creation_id = creation.action_id, .zone = creation.zone};
  }
}

std::set<std::string> Tracker::Names() const {
  std::set<std::string> names;
  for (const auto& [vm, outcome] : outcomes_) {
    if (outcome.state == OutcomeState::kPending) names.insert(vm);
  }
  return names;
}

void Tracker::Observe(const Decisions& decisions, const Retries& retries,
                      const Leftovers& leftovers, base::MonoTime now) {
  if (options_.despite_mass_loss || !decisions.snapshot().mass_loss().alarming) {
    mass_loss_since_.reset();
  } else if (!mass_loss_since_.has_value()) {
    mass_loss_since_ = now;
  }
  for (auto& [vm, outcome] : outcomes_) {
    const Entry* entry = decisions.Find(vm);
    switch (outcome.goal) {
      case Goal::kMake:
        ObserveMake(vm, entry, decisions, retries, now, &outcome);
        break;
      case Goal::kRemove:
        ObserveRemove(vm, entry, decisions, retries, leftovers, now, &outcome);
        break;
      case Goal::kTakeBack:
        ObserveTakeBack(entry, decisions, retries, now, &outcome);
        break;
    }
  }
}

bool Tracker::WaitsForNodes(const Step& step, base::MonoTime now) const {
  return mass_loss_since_.has_value() && now - *mass_loss_since_ >= kRefusedForGood &&
         IsRemoval(step.kind);
}

void Tracker::ObserveMake(const std::string& vm, const Entry* entry, const Decisions& decisions,
                          const Retries& retries, base::MonoTime now, VmOutcome* outcome) {
  const PoolSnapshot& snapshot = decisions.snapshot();
  if (entry == nullptr) {
    if (outcome->state != OutcomeState::kPending || !outcome->begun) return;
    Fail(base::Internal(outcome->text.empty() ? "the VM is gone" : outcome->text), outcome);
    return;
  }
  const VmView& view = *entry->view;
  if (IsPendingReplacement(view, snapshot) && !view.vm->has_mark) {
    // It was made by a replacement that this Scale has interrupted, and does not count. The
    // creation is repeated, which takes it over (rule R4).
    outcome->begun = false;
    return;
  }
  outcome->begun = true;
  if (outcome->state == OutcomeState::kDone) return;
  if (view.vm->has_mark || harvester::IsTerminating(view.vm)) {
    if (outcome->state == OutcomeState::kFailed) return;
    Fail(base::Internal(outcome->text.empty() ? "the VM is being removed"
                                              : outcome->text + "; it is removed"),
         outcome);
    return;
  }
  if (IsBroken(view, snapshot)) {
    // It is about to be removed, or kept and reported; in both cases it was not delivered.
    outcome->text = entry->step.reason;
    failed_[vm] = CauseOfBroken(view);
    Fail(view.start_failure.has_value()
             ? base::FailedPrecondition(outcome->text)
             : base::MakeStatus(absl::StatusCode::kDeadlineExceeded, outcome->text),
         outcome);
    return;
  }
  const nomad::Node* node = LinkedNode(view, snapshot);
  if (node != nullptr && snapshot.policy.has_value() && !BelongsToPool(*node, view, snapshot)) {
    failed_[vm] = cause::kJoin;
    Fail(base::FailedPrecondition("its node joined another pool: " + WrongPool(*node, snapshot)),
         outcome);
    return;
  }
  const std::string& node_id = view.vm->joined_node_id;
  if (harvester::WasReady(view.vm)) return SetMade(vm, node_id, "A new VM is ready", outcome);
  if (harvester::HasJoined(view.vm)) RecordRegistered(vm, node_id, outcome);
  if (view.vm->join_timeout.has_value() && view.vm->join_timeout->none) {
    return SetMade(vm, node_id, "A new VM is delivered; its node is not waited for", outcome);
  }
  // A refused renewal fails nothing: the current token may last until the VM boots, and only the
  // join deadline decides.
  const bool renews = entry->step.kind == StepKind::kRenewToken;
  absl::Status refused = renews ? absl::OkStatus() : RefusedForGood(*entry, retries, now);
  if (!refused.ok()) {
    failed_[vm] = cause::kJoin;
    Fail(std::move(refused), outcome);
    return;
  }
  // A failed creation is pending again if its VM exists after an unanswered POST, or is healthy
  // again, which is unknown without Nomad.
  if (snapshot.look().nomad_readable) outcome->state = OutcomeState::kPending;
  outcome->text = TextOf(*entry, retries, now);
}

void Tracker::RecordRegistered(const std::string& vm, const std::string& node_id,
                               VmOutcome* outcome) {
  if (std::exchange(outcome->registered, true)) return;
  options_.logger.Info("The node of a new VM has registered",
                       {{"vm", vm}, {"node_id", node_id}, {"action_id", outcome->creation_id}});
}

void Tracker::SetMade(const std::string& vm, const std::string& node_id, std::string_view message,
                      VmOutcome* outcome) {
  outcome->state = OutcomeState::kDone;
  outcome->error = absl::OkStatus();
  failed_.erase(vm);
  options_.logger.Info(message,
                       {{"vm", vm}, {"node_id", node_id}, {"action_id", outcome->creation_id}});
}

void Tracker::ObserveGone(const std::string& vm, const Leftovers& leftovers, base::MonoTime now,
                          VmOutcome* outcome) {
  if (!outcome->gone_since.has_value()) {
    // First looks for its leftovers, unless the call does not wait for them.
    outcome->gone_since = now;
    if (outcome->begun && !options_.until_accepted) return;
  }
  const auto left = leftovers.find(vm);
  if (left != leftovers.end() && !options_.until_accepted) {
    const bool for_good = left->second.refused_for_good;
    if (!for_good && now - *outcome->gone_since < outcome->leftovers_limit) {
      outcome->text = "waiting for its " + left->second.what;
      return;
    }
    outcome->left = left->second.what;
    options_.logger.Warn("Removed a VM, but something is left of it; the background goes on",
                         {{"vm", vm}, {"left", outcome->left}, {"action_id", outcome->action}});
  } else {
    options_.logger.Info("Removed a VM", {{"vm", vm}, {"action_id", outcome->action}});
  }
  outcome->state = OutcomeState::kDone;
}

void Tracker::ObserveRemove(const std::string& vm, const Entry* entry, const Decisions& decisions,
                            const Retries& retries, const Leftovers& leftovers, base::MonoTime now,
                            VmOutcome* outcome) {
  if (outcome->state != OutcomeState::kPending) return;
  const PoolSnapshot& snapshot = decisions.snapshot();
  const VmView* const standing = snapshot.seen->FindVm(vm);
  if (standing != nullptr && (entry == nullptr || !standing->member)) {
    if (harvester::IsTerminating(standing->vm)) return;
    return Fail(base::FailedPrecondition(
                    "it stands, and is no VM of the pool any more: its labels or its annotation " +
                    std::string(harvester::kSelfAnnotation) +
                    " were changed; nothing more is done with it. Restore them, or delete it"),
                outcome);
  }
  if (entry == nullptr) return ObserveGone(vm, leftovers, now, outcome);
  const VmView& view = *entry->view;
  outcome->leftovers_limit = view.vm->termination_grace + kLeftoversMargin;
  if (harvester::IsTerminating(view.vm)) {
    outcome->begun = true;
    if (IsStuckInDeletion(view, snapshot.now())) Fail(Stuck(view.vm), outcome);
    return;
  }
  const Step& step = entry->step;
  absl::Status refused = RemovalRefused(*entry, retries, now);
  if (view.vm->has_mark) {
    outcome->begun = true;
    outcome->text = TextOf(*entry, retries, now);
    if (view.vm->mark.has_value()) outcome->action = view.vm->mark->action;
    const nomad::Node* node = LinkedNode(view, snapshot);
    const bool accepted = view.vm->mark.has_value() && node != nullptr &&
                          nodepool::IsDrainOf(*node, view.vm->mark->action, view.vm->uid);
    // The background waits for a drain that cannot begin, for example because the node is away.
    const bool cannot_begin = step.kind == StepKind::kWait && snapshot.look().nomad_readable;
    // The background removes nothing during a mass loss.
    const bool may_leave = options_.until_accepted && !decisions.snapshot().mass_loss().alarming;
    if (may_leave && (accepted || cannot_begin)) outcome->state = OutcomeState::kDone;
    if (WaitsForNodes(step, now)) {
      return Fail(base::Unavailable("its removal waits, because too many VMs have lost their Nomad "
                                    "nodes at once; the background goes on when they are back"),
                  outcome);
    }
    const Retries::Key drain(StepName(StepKind::kStartDrain), view.vm->uid);
    if (step.row == Row::kMarkedLate && outcome->error.ok() && !retries.LastOf(drain).ok()) {
      // The deadline passed before the refusal had lasted long enough.
      outcome->error = base::Annotate(retries.LastOf(drain), step.reason);
      outcome->refused = retries.RefusedFor(drain, now) > base::Duration::zero();
    }
    if (refused.ok()) return;
    // The refusal becomes the outcome's error. If the mark can be removed, that is done first.
    outcome->error = refused;
    outcome->refused = true;
    const bool rolls_back = step.kind == StepKind::kRollBack && !view.unmarking_refused;
    if (!rolls_back) Fail(std::move(refused), outcome);
    return;
  }
  const Retries::Key marking(kMark, view.vm->uid);
  if (outcome->mark_refused && !outcome->begun && !outcome->unknown &&
      retries.IsRefusedForGood(marking, now)) {
    outcome->refused = true;
    return Fail(retries.LastOf(marking), outcome);
  }
  if (!outcome->begun || !snapshot.look().nomad_readable) return;
  // The mark was removed, by us or by an operator. Wait until its drain is rolled back, too.
  const absl::Status undoing = RefusedForGood(*entry, retries, now);
  if (IsRepair(step.kind) && undoing.ok()) return;
  if (outcome->error.ok()) outcome->error = undoing;
  options_.logger.Warn("Rolled back the removal of a VM",
                       {{"vm", vm}, {"why", outcome->text}, {"action_id", outcome->action}});
  const std::string why = outcome->text.empty() ? std::string() : ": " + outcome->text;
  Fail(outcome->error.ok() ? base::FailedPrecondition("rolled back" + why)
                           : base::Annotate(outcome->error, "rolled back"),
       outcome);
}

void Tracker::ObserveTakeBack(const Entry* entry, const Decisions& decisions,
                              const Retries& retries, base::MonoTime now, VmOutcome* outcome) {
  if (outcome->state != OutcomeState::kPending || !decisions.snapshot().look().nomad_readable)
    return;
  if (entry == nullptr || harvester::IsTerminating(entry->view->vm)) {
    Fail(base::FailedPrecondition("its removal could not be cancelled: it is gone"), outcome);
    return;
  }
  const VmView& view = *entry->view;
  outcome->text = TextOf(*entry, retries, now);
  if (absl::Status refused = RefusedForGood(*entry, retries, now); !refused.ok()) {
    Fail(std::move(refused), outcome);
    return;
  }
  // Only the VM's own Nomad knows whether its node is ready or still drains.
  if (IsOtherNomad(view.vm, decisions.snapshot().look())) return;
  if (view.vm->has_mark) {
    if (entry->step.kind == StepKind::kRollBack) return;
    if (!IsReadable(view, decisions.snapshot().look())) return;
    const nomad::Node* node = LinkedNode(view, decisions.snapshot());
    if (node != nullptr && node->status == nomad::NodeStatus::kReady) return;
    Fail(base::FailedPrecondition("its removal goes on: its node is not ready any more"), outcome);
    return;
  }
  if (IsRepair(entry->step.kind)) return;
  outcome->state = OutcomeState::kDone;
  options_.logger.Info("Cancelled the removal of a VM",
                       {{"vm", view.vm->name}, {"action_id", outcome->action}});
}

bool Tracker::Replace(const std::string& vm, const std::string& why) {
  options_.logger.Info("VM can no longer be removed; choosing another",
                       {{"vm", vm}, {"why", why}, {"action_id", options_.action_id}});
  passed_over_.push_back({vm, why});
  if (reserve_.empty()) return false;
  const PlannedRemoval next = std::move(reserve_.front());
  reserve_.erase(reserve_.begin());
  outcomes_.erase(vm);
  outcomes_[next.vm] = {.goal = Goal::kRemove, .node_id = next.node_id};
  options_.logger.Info("Another victim takes its place",
                       {{"vm", next.vm}, {"why", next.reason}, {"action_id", options_.action_id}});
  return true;
}

std::set<std::string> Tracker::ToMark(const Decisions& decisions) {
  const PoolSnapshot& snapshot = decisions.snapshot();
  std::set<std::string> to_mark;
  if (!snapshot.look().nomad_readable) return to_mark;
  std::vector<std::pair<std::string, std::string>> unsuitable;
  for (const auto& [vm, outcome] : outcomes_) {
    if (outcome.goal != Goal::kRemove || outcome.state != OutcomeState::kPending || outcome.begun)
      continue;
    const Entry* entry = decisions.Find(vm);
    if (entry == nullptr || harvester::IsTerminating(entry->view->vm)) continue;
    const nomad::Node* node = LinkedNode(*entry->view, snapshot);
    std::string objection = ObjectionTo(*entry->view, node, snapshot);
    if (objection.empty()) {
      to_mark.insert(vm);
    } else {
      unsuitable.emplace_back(vm, std::move(objection));
    }
  }
  for (const auto& [vm, why] : unsuitable) {
    RecordMark(vm, {.verdict = Verdict::kUnsuitable, .status = base::FailedPrecondition(why)},
               false);
  }
  return to_mark;
}

std::vector<std::string> Tracker::ToMake() const {
  std::vector<std::string> to_make;
  for (const auto& [vm, outcome] : outcomes_) {
    if (outcome.goal == Goal::kTakeBack && outcome.state == OutcomeState::kPending) return {};
    const bool makes = outcome.goal == Goal::kMake && outcome.state == OutcomeState::kPending;
    if (makes && !outcome.begun) to_make.push_back(vm);
  }
  return to_make;
}

void Tracker::RecordMark(const std::string& vm, const Effect& effect, bool refused_for_good) {
  VmOutcome& outcome = outcomes_.at(vm);
  switch (effect.verdict) {
    case Verdict::kDone:
      outcome.begun = true;
      outcome.action = options_.action_id;
      break;
    case Verdict::kUnsuitable:
      // A victim whose mark may still be written is never replaced by another one (rule I2).
      if (outcome.unknown || !Replace(vm, base::Message(effect.status)))
        Fail(effect.status, &outcome);
      break;
    case Verdict::kRefused:
      outcome.text = base::Message(effect.status);
      outcome.mark_refused = true;
      outcome.refused = refused_for_good;
      if (refused_for_good) Fail(effect.status, &outcome);
      break;
    case Verdict::kFailed:
      outcome.text = base::Message(effect.status);
      outcome.unknown = outcome.unknown || effect.sent;
      break;
    case Verdict::kNotWanted:
    case Verdict::kConflict:
    case Verdict::kCancelled:
      break;
  }
}

void Tracker::RecordMake(const std::string& vm, const Effect& effect) {
  VmOutcome& outcome = outcomes_.at(vm);
  switch (effect.verdict) {
    case Verdict::kDone:
      outcome.begun = true;
      break;
    case Verdict::kConflict:
    case Verdict::kFailed:
      // The POST is repeated with the same name until it is answered (rule C3).
      outcome.text = base::Message(effect.status);
      if (MayRepeatCreation(effect)) break;
      [[fallthrough]];
    case Verdict::kRefused:
    case Verdict::kUnsuitable:
      failed_[vm] = cause::kCreate;
      Fail(effect.status, &outcome);
      break;
    case Verdict::kNotWanted:
    case Verdict::kCancelled:
      break;
  }
}

void Tracker::RecordJoined(const std::string& vm, const std::string& node_id, bool ready) {
  const auto found = outcomes_.find(vm);
  if (found == outcomes_.end() || found->second.goal != Goal::kMake) return;
  if (found->second.state != OutcomeState::kPending) return;
  if (ready) return SetMade(vm, node_id, "A new VM is ready", &found->second);
  RecordRegistered(vm, node_id, &found->second);
}

bool Tracker::Ended(const Decisions& decisions, const Retries& retries, base::MonoTime now) const {
  for (const auto& [vm, outcome] : outcomes_) {
    if (outcome.state == OutcomeState::kPending) return false;
    // A failed creation has ended when its VM no longer exists, or stays for an operator to check.
    const bool failed_make = outcome.goal == Goal::kMake && outcome.state == OutcomeState::kFailed;
    if (!failed_make || options_.until_accepted) continue;
    const Entry* entry = decisions.Find(vm);
    if (entry == nullptr) continue;
    const bool acts = IsAct(entry->step.kind) && !IsDeferred(entry->step.kind);
    if (!acts && !entry->view->vm->has_mark) continue;
    const bool stays = WaitsForNodes(entry->step, now) ||
                       IsStuckInDeletion(*entry->view, decisions.snapshot().now()) ||
                       !RemovalRefused(*entry, retries, now).ok() ||
                       !RefusedForGood(*entry, retries, now).ok();
    if (!stays) return false;
  }
  return true;
}

std::set<std::string> Tracker::Gone() const {
  std::set<std::string> gone;
  for (const auto& [vm, outcome] : outcomes_) {
    if (outcome.gone_since.has_value() && outcome.state == OutcomeState::kPending) gone.insert(vm);
  }
  return gone;
}

void Tracker::AddTo(RunSummary* run) const {
  bool removal_failed = false;
  bool removal_pending = false;
  bool all_refused = true;
  for (const auto& [vm, outcome] : outcomes_) {
    const bool done = outcome.state == OutcomeState::kDone;
    const bool failed = outcome.state == OutcomeState::kFailed;
    switch (outcome.goal) {
      case Goal::kMake: {
        // Its POST was accepted or the VM was observed: the name is never used again (rule C10).
        if (outcome.begun) run->seen.insert(vm);
        run->created = run->created || done;
        // The VM appeared and was deleted for an unknown cause.
        if (failed && !failed_.contains(vm)) run->failures.insert(std::string(cause::kCreate));
        break;
      }
      case Goal::kRemove:
        run->removed = run->removed || (done && !options_.uncounted.contains(vm));
        removal_failed = removal_failed || failed;
        removal_pending = removal_pending || outcome.state == OutcomeState::kPending;
        all_refused = all_refused && (!failed || outcome.refused);
        break;
      case Goal::kTakeBack:
        break;
    }
  }
  for (const auto& [vm, cause] : failed_) run->failures.insert(cause);
  if (removal_failed && !run->removed && !removal_pending) {
    run->failures.insert(std::string(all_refused ? cause::kRefused : cause::kRemove));
  }
}

std::set<std::string> Tracker::FailedVms() const {
  std::set<std::string> all;
  for (const auto& [vm, cause] : failed_) all.insert(vm);
  return all;
}

absl::Status Tracker::FinalStatus(const absl::Status& ended) const {
  struct Line {
    std::vector<std::string> vms{};
    std::string text{};
  };
  std::vector<Line> grouped;  // VMs with the same outcome share a line
  absl::Status first_failure;
  bool all_alike = true;
  int failed = 0;
  int done = 0;
  int pending = 0;
  for (const auto& [vm, outcome] : outcomes_) {
    std::string text;
    switch (outcome.state) {
      case OutcomeState::kDone:
        ++done;
        text = "done";
        break;
      case OutcomeState::kPending:
        ++pending;
        text = "unfinished" + (outcome.text.empty() ? std::string() : ", " + outcome.text);
        break;
      case OutcomeState::kFailed:
        ++failed;
        if (first_failure.ok()) first_failure = outcome.error;
        all_alike = all_alike && outcome.error.code() == first_failure.code();
        text = "failed: " + base::Message(outcome.error);
        break;
    }
    const auto key = [](const std::string& of, const std::string& name, const std::string& node) {
      return base::WithoutName(base::WithoutName(of, name), node);
    };
    const std::string own_key = key(text, vm, outcome.node_id);
    const auto same = std::find_if(grouped.begin(), grouped.end(), [&](const Line& line) {
      const std::string& first = line.vms.front();
      return key(line.text, first, outcomes_.at(first).node_id) == own_key;
    });
    if (same == grouped.end()) {
      grouped.push_back({.vms = {vm}, .text = std::move(text)});
    } else {
      same->vms.push_back(vm);
    }
  }
  std::string lines;
  for (const auto& [vms, text] : grouped) {
    lines += "\n" +
             (vms.size() == 1 ? vms[0]
                              : std::to_string(vms.size()) + " VMs (" + base::FirstFew(vms) + ")") +
             ": " + text;
  }
  if (!ended.ok()) return base::MakeStatus(ended.code(), base::Message(ended) + lines);
  if (failed == 0 && pending == 0) return absl::OkStatus();
  for (const SkippedVm& passed : passed_over_) {
    if (!outcomes_.contains(passed.vm))
      lines += "\n" + passed.vm + ": passed over, " + passed.reason;
  }
  // If nothing succeeded and all failures have the same code, return that code. ABORTED is reserved
  // for "busy".
  const bool alike =
      done == 0 && pending == 0 && all_alike && first_failure.code() != absl::StatusCode::kAborted;
  return base::MakeStatus(alike ? first_failure.code() : absl::StatusCode::kInternal,
                          std::to_string(failed) + " of " +
                              std::to_string(failed + done + pending) + " VMs failed:" + lines);
}

}  // namespace nomad_harvester::scaling
