// SPDX-License-Identifier: Apache-2.0
#include "acts.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include "nomad_harvester/scaling/step_spec.h"

namespace nomad_harvester::explore {
namespace {

using scaling::Read;
using scaling::Row;
using scaling::StepKind;

struct Pair {
  ActKind act;
  StepKind step;
};
constexpr std::array<Pair, 15> kPairs = {{{ActKind::kCancelDrain, StepKind::kCancelDrain},
                                          {ActKind::kEnable, StepKind::kEnable},
                                          {ActKind::kStartDrain, StepKind::kStartDrain},
                                          {ActKind::kDelete, StepKind::kDelete},
                                          {ActKind::kPurge, StepKind::kPurge},
                                          {ActKind::kRemoveMark, StepKind::kRollBack},
                                          {ActKind::kMarkBroken, StepKind::kMarkBroken},
                                          {ActKind::kMarkUnhealthy, StepKind::kMarkUnhealthy},
                                          {ActKind::kMarkReplaced, StepKind::kMarkReplaced},
                                          {ActKind::kKeepReplaced, StepKind::kKeepReplaced},
                                          {ActKind::kStart, StepKind::kStart},
                                          {ActKind::kRecordRolledBack, StepKind::kRecordRolledBack},
                                          {ActKind::kRecordJoin, StepKind::kRecordJoin},
                                          {ActKind::kRecordReady, StepKind::kRecordReady},
                                          {ActKind::kRecordCluster, StepKind::kRecordCluster}}};

// kNothing for acts that are no steps: marks of a scale-in, creations, ends of replacements.
StepKind StepOf(ActKind act) {
  const auto* found =
      std::find_if(kPairs.begin(), kPairs.end(), [act](const Pair& p) { return p.act == act; });
  return found == kPairs.end() ? StepKind::kNothing : found->step;
}
ActKind ActOf(StepKind step) {
  const auto* found =
      std::find_if(kPairs.begin(), kPairs.end(), [step](const Pair& p) { return p.step == step; });
  return found == kPairs.end() ? ActKind::kNone : found->act;
}

ActPhase PhaseOf(Read read) {
  switch (read) {
    case Read::kNodes:
    case Read::kNode:
    case Read::kMarksNode:
      return ActPhase::kReadNode;
    case Read::kCluster:
      return ActPhase::kReadKeys;
    case Read::kAllocations:
      return ActPhase::kReadWork;
    case Read::kVm:
    case Read::kVmGone:
      return ActPhase::kReadVm;
    case Read::kInstance:
      return ActPhase::kReadInstance;
  }
  return ActPhase::kSent;
}

// WithCluster of executor.cc; the mark of a scale-in is written with it, too.
bool RecordsKeys(ActKind kind) {
  return kind == ActKind::kRecordJoin || kind == ActKind::kRecordCluster ||
         kind == ActKind::kMarkBroken || kind == ActKind::kMarkUnhealthy ||
         kind == ActKind::kMarkReplaced;
}

constexpr std::size_t kPhases = static_cast<std::size_t>(ActPhase::kSent) + 1;
struct Protocol {
  ActPhase first = ActPhase::kSent;
  std::array<ActPhase, kPhases> after{};
  std::array<bool, kPhases> compares_keys{};
  bool all_nodes = false;
};

Protocol ProtocolOf(StepKind kind, Row row, bool with_node) {
  scaling::Step step{.kind = kind, .row = row};
  if (with_node) step.node_id = "node";
  Protocol protocol;
  std::optional<ActPhase> last;
  for (const Read read : ReadsOf(step)) {
    protocol.all_nodes = protocol.all_nodes || read == Read::kNodes;
    const ActPhase phase = PhaseOf(read);
    const bool keys = read == Read::kCluster;
    if (keys) protocol.compares_keys.at(static_cast<std::size_t>(last.value_or(phase))) = true;
    if (last == phase || (keys && last.has_value())) continue;
    (last.has_value() ? protocol.after.at(static_cast<std::size_t>(*last)) : protocol.first) =
        phase;
    last = phase;
  }
  if (last.has_value()) protocol.after.at(static_cast<std::size_t>(*last)) = ActPhase::kSent;
  return protocol;
}

constexpr std::size_t kKinds = static_cast<std::size_t>(StepKind::kPurge) + 1;
constexpr std::size_t kRows = static_cast<std::size_t>(Row::kMarkedStartDrain) + 1;

std::vector<Protocol> AllProtocols() {
  std::vector<Protocol> all;
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    for (std::size_t row = 0; row < kRows; ++row) {
      for (const bool with_node : {false, true}) {
        all.push_back(ProtocolOf(static_cast<StepKind>(kind), static_cast<Row>(row), with_node));
      }
    }
  }
  return all;
}

const Protocol& ProtocolOf(const Act& act) {
  static const std::vector<Protocol> kAll = AllProtocols();
  // A victim's node is read before its mark, as MarkVictim of executor.cc does.
  static const Protocol kMark = ProtocolOf(StepKind::kStartDrain, Row::kMarkedStartDrain, true);
  static const Protocol kNone;
  if (act.kind == ActKind::kMark) return act.flag != 0 ? kMark : kNone;
  const auto kind = static_cast<std::size_t>(StepOf(act.kind));
  return kAll[(kind * kRows + act.row) * 2 + (act.node != kNoNode ? 1 : 0)];
}

}  // namespace

bool IsRepair(ActKind kind) { return scaling::IsRepair(StepOf(kind)); }
bool IsRemoval(ActKind kind) { return scaling::IsRemoval(StepOf(kind)); }

ActPhase FirstPhase(const Act& act) { return ProtocolOf(act).first; }
ActPhase PhaseAfter(const Act& act) {
  return ProtocolOf(act).after.at(static_cast<std::size_t>(act.phase));
}
bool ReadsAllNodes(const Act& act) { return ProtocolOf(act).all_nodes; }
bool ComparesKeys(const Act& act) {
  return ProtocolOf(act).compares_keys.at(static_cast<std::size_t>(act.phase));
}

Act ActFor(const Advice& advice, const Vm& vm, const std::array<Node, kNodesPerVm>& nodes) {
  Act act{};
  act.kind = ActOf(advice.kind);
  if (!act.Busy()) return act;
  act.row = static_cast<Bits>(advice.row) & 127U;
  act.node = advice.node & 3U;
  if (act.kind == ActKind::kRecordJoin) act.flag = advice.flag;
  act.stale = vm.stale;
  if (RecordsKeys(act.kind)) act.keys = advice.records;
  act.phase = FirstPhase(act);
  if (act.kind == ActKind::kRecordRolledBack) {
    act.action = nodes[advice.node & 1U].action;
    act.number = nodes[advice.node & 1U].number;
  }
  return act;
}

}  // namespace nomad_harvester::explore
