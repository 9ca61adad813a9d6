// SPDX-License-Identifier: Apache-2.0
#include <string_view>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/scaling/step_spec.h"

#include "gc_command.h"
#include "text.h"

namespace nomad_harvester::cli {
namespace {

using scaling::ReconcileEvent;
using scaling::StepKind;

// The same act as done, and as planned.
struct Verb {
  std::string_view past;
  std::string_view infinitive;
};

Verb VerbOf(StepKind kind) {
  switch (kind) {
    case StepKind::kCancelDrain:
      return {"cancelled the drain of its node", "cancel the drain of its node"};
    case StepKind::kEnable:
      return {"made its node eligible again", "make its node eligible again"};
    case StepKind::kRecordRolledBack:
      return {"recorded the roll-back", "record the roll-back"};
    case StepKind::kMarkBroken:
      return {"marked the VM as broken", "mark the VM as broken, and remove it"};
    case StepKind::kMarkUnhealthy:
      return {"marked the VM as unhealthy", "mark the VM as unhealthy, and remove it"};
    case StepKind::kRecordJoin:
      return {"recorded the join", "record the join"};
    case StepKind::kForgetJoinTimeout:
      return {"cleared its join timeout", "clear its join timeout"};
    case StepKind::kRollBack:
      return {"removed the mark", "remove the mark"};
    case StepKind::kStartDrain:
      return {"started the drain of its node", "start the drain of its node"};
    case StepKind::kDelete:
      return {"deleted the VM", "delete the VM"};
    default:
      return {StepName(kind), StepName(kind)};
  }
}

Verb VerbOf(ReconcileEvent::Kind kind) {
  switch (kind) {
    case ReconcileEvent::Kind::kPurge:
      return {"purged node", "purge node"};
    case ReconcileEvent::Kind::kDeleteClaim:
      return {"deleted volume", "delete volume"};
    case ReconcileEvent::Kind::kDeleteSecret:
      return {"deleted Secret", "delete Secret"};
    case ReconcileEvent::Kind::kSetSecretOwner:
      return {"set the owner of Secret", "set the owner of Secret"};
    case ReconcileEvent::Kind::kStep:
      break;
  }
  return {};
}

std::string_view WhyOf(const ReconcileEvent& event) {
  switch (event.kind) {
    case ReconcileEvent::Kind::kStep:
      return event.step.reason;
    case ReconcileEvent::Kind::kSetSecretOwner:
      return "its VM exists";
    default:
      return "its VM is gone";
  }
}

}  // namespace

std::string EventLine(const ReconcileEvent& event, bool dry_run) {
  const bool is_step = event.kind == ReconcileEvent::Kind::kStep;
  std::string text = event.vm + ": ";
  if (is_step && event.step.kind == StepKind::kWait) {
    text += "waiting: " + event.step.reason;
  } else if (is_step && event.step.kind == StepKind::kReport) {
    text += "left alone: " + event.step.reason;
  } else {
    const Verb verb = is_step ? VerbOf(event.step.kind) : VerbOf(event.kind);
    const bool done = !dry_run && event.outcome.ok();
    if (!done) text += dry_run ? "would " : "could not ";
    text += done ? verb.past : verb.infinitive;
    if (!is_step) text += " " + event.object;
    text += ": ";
    text += WhyOf(event);
    if (!event.outcome.ok()) text += ": " + base::Message(event.outcome);
  }
  return Printable(text);
}

}  // namespace nomad_harvester::cli
