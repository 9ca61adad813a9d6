// SPDX-License-Identifier: Apache-2.0
// The output of nomad-harvester plan for a proposal that has everything.
#include "plan_view.h"

#include <gtest/gtest.h>

#include "nomad_harvester/base/status.h"

#include "cli/golden.h"
#include "nlohmann/json.hpp"
#include "scaling/world.h"
#include "text.h"

namespace nomad_harvester::cli {
namespace {

scaling::Proposal FullProposal() {
  scaling::World world;
  world.Policy().max_scale_in = 2;
  world.With(scaling::Vm("web-a").Joined().Marked()).With(scaling::Node("web-a"));
  scaling::Proposal proposal;
  proposal.snapshot = world.Snapshot();
  proposal.plan = {.direction = scaling::Direction::kIn,
                   .from = 5,
                   .desired = 1,
                   .to = 3,
                   .capped = true,
                   .cancel_removals = {"web-b"},
                   .create = {{.zone = "a"}, {.zone = "a"}, {.name = "web-c", .zone = "b"}},
                   .remove = {{.vm = "web-d", .node_id = "0123456789ab", .reason = "stopped"}},
                   .reserve = {{.vm = "web-e", .node_id = "", .reason = "least_busy (3 %)"}},
                   .passed_over = {{.vm = "web-f", .reason = "protected by its annotation"}},
                   .would_wait = {{.vm = "web-d",
                                   .reason = "default/api.server: 2 of 3 allocations (500 MHz, "
                                             "256 MiB each)"}},
                   .missing_victims = 1};
  proposal.roll_backs = {{.vm = "web-g", .reason = "an operator enabled its node"}};
  proposal.replaced = {{.vm = "web-h", .reason = "it never joined: \u201eno route\u201c"}};
  proposal.to_replace = {{.vm = "web-i", .reason = "requested: its disk is full"},
                         {.vm = "web-j", .reason = "drifted: image"}};
  proposal.replacement_blocked_reason = "VM web-a is being removed";
  proposal.notes = {"a growth needs 2 GiB"};
  proposal.refusal = base::FailedPrecondition("no victim\nis left");
  return proposal;
}

TEST(PlanDocument, of_everything_is_that_of_the_golden_file) {
  ExpectGolden("plan.json", PrintableJson(PlanDocument(FullProposal())));
}

TEST(PlanText, of_everything_is_that_of_the_golden_file) {
  ExpectGolden("plan.txt", PlanText(FullProposal()) + ReplacementText(FullProposal()) +
                               RefusalText(FullProposal()));
}

}  // namespace
}  // namespace nomad_harvester::cli
