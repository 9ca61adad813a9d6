#include <string_view>

#include "nomad_harvester/base/status.h"

#include "gc_command.h"
#include "text.h"

namespace nomad_harvester::cli {
namespace {

using scaling::Deed;
using scaling::StepKind;

// The same act, done and to be done.
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
      return {"ended its join timeout", "end its join timeout"};
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

Verb VerbOf(Deed::Kind kind) {
  switch (kind) {
    case Deed::Kind::kPurge:
      return {"purged node", "purge node"};
    case Deed::Kind::kDeleteClaim:
      return {"deleted volume", "delete volume"};
    case Deed::Kind::kDeleteSecret:
      return {"deleted Secret", "delete Secret"};
    case Deed::Kind::kOwnSecret:
      return {"gave its owner to Secret", "give its owner to Secret"};
    case Deed::Kind::kStep:
      break;
  }
  return {};
}

std::string_view WhyOf(const Deed& deed) {
  switch (deed.kind) {
    case Deed::Kind::kStep:
      return deed.step.reason;
    case Deed::Kind::kOwnSecret:
      return "its VM stands";
    default:
      return "its VM is gone";
  }
}

}  // namespace

std::string DeedLine(const Deed& deed, bool dry_run) {
  const bool is_step = deed.kind == Deed::Kind::kStep;
  std::string text = deed.vm + ": ";
  if (is_step && deed.step.kind == StepKind::kWait) {
    text += "waiting: " + deed.step.reason;
  } else if (is_step && deed.step.kind == StepKind::kReport) {
    text += "left alone: " + deed.step.reason;
  } else {
    const Verb verb = is_step ? VerbOf(deed.step.kind) : VerbOf(deed.kind);
    const bool done = !dry_run && deed.outcome.ok();
    if (!done) text += dry_run ? "would " : "could not ";
    text += done ? verb.past : verb.infinitive;
    if (!is_step) text += " " + deed.object;
    text += ": ";
    text += WhyOf(deed);
    if (!deed.outcome.ok()) text += ": " + base::Message(deed.outcome);
  }
  return Printable(text);
}

}  // namespace nomad_harvester::cli
