// SPDX-License-Identifier: Apache-2.0
#include "configuration.h"

#include <cstddef>

namespace nomad_harvester::explore {

State InitialState(const Configuration& configuration) {
  State state = EmptyState();
  state.budgets = configuration.budgets;
  state.ceiling = static_cast<std::uint8_t>(configuration.standing);
  for (int i = 0; i < configuration.standing; ++i) {
    Slot& slot = state.slots[static_cast<std::size_t>(i)];
    slot.vm.phase = Phase::kStanding;
    slot.vm.joined = slot.vm.running = 1;
    slot.nodes[0].present = slot.nodes[0].eligible = 1;
    slot.nodes[0].power = Power::kReady;
    slot.nodes[0].work = Work::kRunning;
  }
  return state;
}

std::vector<Configuration> Configurations(bool large) {
  const auto more = static_cast<std::uint8_t>(large ? 1 : 0);
  const auto one_more = static_cast<std::uint8_t>(large ? 2 : 1);
  return {
      {.name = "crash",
       .about = "two scale-ins; kills, requests that are lost or late, Scales that end early",
       .budgets = {.scales = 2, .crashes = one_more, .late = 1, .lost = 1, .timeouts = more}},
      {.name = "grow",
       .about =
           "scale-out, cancelled removals and scale-in; a VM that never joins; POSTs without reply",
       .vms = 3,
       .standing = 1,
       .budgets = {.scales = 2, .crashes = 1, .late = 1, .lost = more, .overdue = 1}},
      {.name = "drains",
       .about = "operators cancel our drain, drain, and change the eligibility",
       .vms = 1,
       .standing = 1,
       .budgets = {.scales = 2,
                   .crashes = 1,
                   .late = more,
                   .op_cancel = 1,
                   .op_drain = 1,
                   .op_toggle = one_more,
                   .tasks = 1}},
      {.name = "marks",
       .about = "operators remove or spoil marks, delete, stop and copy VMs",
       .vms = 3,
       .budgets =
           {.scales = 1, .crashes = more, .late = 1, .op_unmark = 1, .op_vm = 1, .op_clone = 1}},
      {.name = "nodes",
       .about = "nodes go down, return, register anew, are purged",
       .vms = 1,
       .standing = 1,
       .budgets = {.scales = 2,
                   .crashes = 1,
                   .late = more,
                   .deadlines = 1,
                   .node_down = 2,
                   .node_return = 1,
                   .node_again = 1,
                   .node_purged = 1,
                   .tasks = 1}},
      {.name = "joins",
       .about = "guests register late, under a wrong name, or never; Nomad does not answer",
       .vms = 2,
       .standing = 1,
       .budgets = {.scales = 2,
                   .crashes = 1,
                   .late = more,
                   .unreadable = 1,
                   .node_again = 1,
                   .node_purged = more,
                   .misnamed = 1,
                   .overdue = 1,
                   .elsewhere = more}},
      {.name = "deadlines",
       .about = "deadlines pass while tasks still stop; operators cancel",
       .vms = 1,
       .standing = 1,
       .budgets = {.scales = 2,
                   .crashes = 1,
                   .late = 1,
                   .deadlines = 2,
                   .op_cancel = 1,
                   .op_toggle = 1,
                   .node_down = more,
                   .tasks = 1,
                   .stopping = 1}},
      {.name = "no-force",
       .about = "the same for marks without force_after_deadline",
       .vms = 1,
       .standing = 1,
       .force = false,
       .budgets = {.scales = 2,
                   .crashes = 1,
                   .late = 1,
                   .deadlines = 2,
                   .op_toggle = 1,
                   .node_down = 1,
                   .tasks = 1,
                   .stopping = 1}},
      {.name = "hanging",
       .about = "tasks that never stop: deadlines end what is begun",
       .vms = 1,
       .standing = 1,
       .hanging = true,
       .budgets = {.scales = 1, .crashes = 1, .late = 1, .deadlines = 1, .op_cancel = 1}},
      {.name = "hanging-kept",
       .about = "the same without force_after_deadline",
       .vms = 1,
       .standing = 1,
       .force = false,
       .hanging = true,
       .budgets = {.scales = 1, .crashes = 1, .late = 1, .deadlines = 1, .op_cancel = 1}},
      {.name = "endless",
       .about = "drains without a deadline: only Nomad, the machine or an operator ends them",
       .vms = 1,
       .standing = 1,
       .endless = true,
       .budgets = {.scales = 1,
                   .crashes = 1,
                   .late = 1,
                   .op_cancel = 1,
                   .node_down = 1,
                   .node_return = 1,
                   .tasks = 1,
                   .stopping = 1}},
      {.name = "frozen",
       .about = "a second process takes the Lease over from one that is frozen and thaws",
       .processes = 2,
       .budgets = {.scales = 2, .takeovers = one_more, .late = more, .op_unmark = 1}},
      {.name = "no-lease",
       .about = "two processes at once, because no Lease guards the pool (ADR 6): I1, I4, I5",
       .vms = 1,
       .standing = 1,
       .processes = 2,
       .lease = false,
       .budgets =
           {.scales = 2, .late = more, .deadlines = 1, .op_cancel = 1, .op_unmark = 1, .tasks = 1}},
      {.name = "purge",
       .about = "nodes are purged once their VM is gone; Nomad does not answer",
       .purge = true,
       .budgets = {.scales = 1,
                   .crashes = 1,
                   .late = more,
                   .unreadable = 1,
                   .op_vm = more,
                   .node_again = 1}},
      {.name = "unhealthy",
       .about = "VMs that stopped running are replaced; they may come back",
       .replace_unhealthy = true,
       .budgets = {.scales = more,
                   .crashes = 1,
                   .late = 1,
                   .unreadable = 1,
                   .op_vm = 2,
                   .node_down = 1,
                   .node_return = 1,
                   .node_purged = 1}},
  };
}

}  // namespace nomad_harvester::explore
