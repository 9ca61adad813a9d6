// SPDX-License-Identifier: Apache-2.0
#include "rules/retries.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "nomad_harvester/kube/error.h"
#include "nomad_harvester/nomad/error.h"
#include "nomad_harvester/scaling/step_spec.h"

namespace nomad_harvester::scaling {
namespace {

constexpr base::Duration kFirstRetry = std::chrono::seconds(1);
constexpr base::Duration kMaxRetry = std::chrono::seconds(60);
constexpr base::MonoTime kNever = base::MonoTime::max();

// Work for which only a sweep observes whether it is still wanted.
bool IsCleanUp(std::string_view what) {
  return what == kDeleteClaim || what == kDeleteSecret || what == kSetSecretOwner;
}

}  // namespace

Effect EffectOf(absl::Status status) {
  if (status.ok()) return {.verdict = Verdict::kDone};
  const Verdict verdict = absl::IsCancelled(status)  ? Verdict::kCancelled
                          : kube::IsConflict(status) ? Verdict::kConflict
                          : kube::IsRefused(status) || nomad::IsRefused(status) ? Verdict::kRefused
                                                                                : Verdict::kFailed;
  return {.verdict = verdict, .status = std::move(status)};
}

Effect WithoutEffect() { return {.verdict = Verdict::kRefused, .status = kube::WithoutEffect("")}; }

const Retries::Trouble* Retries::Find(const Key& key) const {
  const auto found = troubles_.find(key);
  return found == troubles_.end() ? nullptr : &found->second;
}

bool Retries::MayTry(const Key& key, base::MonoTime now) const {
  const Trouble* trouble = Find(key);
  return trouble == nullptr || now >= trouble->next;
}

bool Retries::Record(const Key& key, const Effect& effect, base::MonoTime now) {
  switch (effect.verdict) {
    case Verdict::kDone: {
      Trouble& trouble = troubles_[key];
      // Only the next observation tells. After a long pause the work is another one.
      if (LacksEffect(key) && now - trouble.next <= kMaxRetry) {
        trouble.accepted = now;
        return false;
      }
      const bool logged = trouble.logged;
      trouble = {.accepted = now, .write = key.write};
      return logged;
    }
    case Verdict::kNotWanted: {
      const Trouble* trouble = Find(key);
      const bool logged = trouble != nullptr && trouble->logged;
      troubles_.erase(key);
      return logged;
    }
    case Verdict::kUnsuitable:
    case Verdict::kCancelled:
      return false;
    case Verdict::kConflict:
    case Verdict::kRefused:
    case Verdict::kFailed:
      break;
  }
  Trouble& trouble = troubles_[key];
  const bool begins = trouble.last.ok();
  if (begins) trouble.failing_since = now;
  const bool was_accepted = std::exchange(trouble.accepted, std::nullopt).has_value();
  trouble.without_effect = was_accepted && trouble.write == key.write;
  const bool refusal_begins =
      effect.verdict == Verdict::kRefused && !trouble.refused_since.has_value();
  if (refusal_begins) trouble.refused_since = now;
  if (effect.verdict == Verdict::kRefused) trouble.refused_last = now;
  const base::Duration before = trouble.wait;
  trouble.wait = begins ? kFirstRetry : std::min(trouble.wait * 2, kMaxRetry);
  // Between four and six fifths, so that many objects do not retry at the same moment.
  trouble.next = now + std::chrono::duration_cast<base::Duration>(
                           trouble.wait * (0.8 + 0.4 * random_.NextFraction()));
  trouble.last = effect.status;
  if (effect.verdict == Verdict::kConflict) return false;
  return !std::exchange(trouble.logged, true) || refusal_begins || trouble.wait != before;
}

bool Retries::WasAccepted(const Key& key, base::MonoTime observed) const {
  const Trouble* trouble = Find(key);
  return trouble != nullptr && trouble->accepted.has_value() && *trouble->accepted <= observed &&
         trouble->write == key.write;
}

bool Retries::LacksEffect(const Key& key) const {
  const Trouble* trouble = Find(key);
  return trouble != nullptr && trouble->without_effect && trouble->write == key.write;
}

void Retries::ConfirmAccepted(base::MonoTime observed, bool of_sweep) {
  for (auto entry = troubles_.begin(); entry != troubles_.end();) {
    auto& [key, trouble] = *entry;
    const bool confirmed =
        IsCleanUp(key.what) == of_sweep && trouble.accepted.value_or(kNever) <= observed;
    if (confirmed) trouble.accepted.reset();
    // The rules may have given up what is refused for good: that must not bring it back.
    const bool ends = confirmed && !IsRefusedForGood(key, observed);
    entry = ends ? troubles_.erase(entry) : std::next(entry);
  }
}

base::Duration Retries::RefusedFor(const Key& key, base::MonoTime now) const {
  const Trouble* trouble = Find(key);
  if (trouble == nullptr || !trouble->refused_since.has_value()) return {};
  return std::max(now - *trouble->refused_since, base::Duration(1));
}

base::Duration Retries::RefusedAgainFor(const Key& key) const {
  const Trouble* trouble = Find(key);
  if (trouble == nullptr || !trouble->refused_since.has_value()) return {};
  return trouble->refused_last - *trouble->refused_since;
}

base::Duration Retries::FailingFor(const Key& key, base::MonoTime now) const {
  const Trouble* trouble = Find(key);
  return trouble == nullptr || trouble->last.ok() ? base::Duration{} : now - trouble->failing_since;
}

absl::Status Retries::LastOf(const Key& key) const {
  const Trouble* trouble = Find(key);
  return trouble == nullptr ? absl::OkStatus() : trouble->last;
}

std::optional<base::MonoTime> Retries::RetryOf(const Key& key) const {
  const Trouble* trouble = Find(key);
  const bool may_pass = trouble != nullptr && !trouble->last.ok() &&
                        EffectOf(trouble->last).verdict != Verdict::kRefused;
  return may_pass ? std::optional(trouble->next) : std::nullopt;
}

std::optional<base::MonoTime> Retries::NextAttempt(base::MonoTime after) const {
  std::optional<base::MonoTime> next;
  for (const auto& [key, trouble] : troubles_) {
    if (trouble.next > after && (!next.has_value() || trouble.next < *next)) next = trouble.next;
  }
  return next;
}

void Retries::KeepOnly(const std::set<std::string>& objects, bool and_clean_up) {
  std::erase_if(troubles_, [&](const auto& entry) {
    const Key& key = entry.first;
    return !objects.contains(key.object) && !(IsCleanUp(key.what) && and_clean_up);
  });
}

void Retries::Apply(base::MonoTime now, Observation* observation) const {
  for (VmView& view : observation->vms) {
    view.stays_unrecorded = false;  // state known to the previous Observation
    if (troubles_.empty()) continue;
    const std::string& uid = view.vm->uid;
    view.removal_refused_for = std::max(RefusedFor({StepName(StepKind::kStartDrain), uid}, now),
                                        RefusedFor({StepName(StepKind::kDelete), uid}, now));
    view.giving_way_refused_for = RefusedAgainFor({StepName(StepKind::kMarkReplaced), uid});
    view.stays_unrecorded =
        RefusedAgainFor({StepName(StepKind::kKeepReplaced), uid}) >= kRefusedForGood;
    const Key start(StepName(StepKind::kStart), uid);
    if (RefusedAgainFor(start) >= kRefusedForGood) view.start_refusal = LastOf(start);
    view.token_refused_for = RefusedAgainFor({StepName(StepKind::kRenewToken), uid});
    view.unmarking_refused =
        RefusedFor({StepName(StepKind::kRollBack), uid}, now) > base::Duration::zero();
  }
}

}  // namespace nomad_harvester::scaling
