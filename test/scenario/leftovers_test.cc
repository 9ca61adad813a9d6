// SPDX-License-Identifier: Apache-2.0
// What an action could not finish is taken up by the next Status, in the same process, too.

#include <gtest/gtest.h>

#include "nomad_harvester/base/json.h"

#include "harness.h"
#include "nlohmann/json.hpp"

namespace nomad_harvester::scenario {
namespace {

using simulator::Fault;
using simulator::RequestInfo;
using std::chrono::minutes;

TEST(Leftovers, C10_a_secret_whose_owner_could_not_be_written_gets_it_later) {
  Harness h;
  h.Tick(minutes(1));  // what a process looks for at its start
  h.cluster.SetFaultHook([](const RequestInfo& request) {
    return request.resource == "secrets" && request.verb == "patch" ? Fault::Drop() : Fault::None();
  });
  ASSERT_TRUE(h.Scale(2).ok());
  h.cluster.SetFaultHook(nullptr);
  h.Tick(minutes(1));
  h.CheckAtRest(2);
}

// Without a VM the Secret is garbage, and nobody may ever ask for the VM again.
TEST(Leftovers, C10_a_secret_of_a_vm_that_did_not_come_goes_although_nothing_else_is_left) {
  Harness h;
  h.Tick(minutes(1));
  h.cluster.SetFaultHook([&](const RequestInfo& request) {
    if (request.resource == "virtualmachines" && request.verb == "create") {
      h.process().CancelScale();
    }
    return Fault::None();
  });
  EXPECT_TRUE(absl::IsCancelled(h.Scale(1)));
  h.cluster.SetFaultHook(nullptr);
  ASSERT_EQ(h.cluster.Secrets().size(), 1U);
  h.Tick(minutes(1));
  h.CheckAtRest(0);
}

TEST(Leftovers, a_scale_that_was_refused_wakes_nobody) {
  Harness h;
  h.Tick(minutes(1));
  h.cluster.SetImageReady("default/ubuntu-24.04", false);
  EXPECT_FALSE(h.Scale(1).ok());
  h.cluster.ResetCounters();
  ASSERT_TRUE(h.Status().ok());
  h.process().RunBackground();
  EXPECT_EQ(h.cluster.RequestCount(), 2);
}

}  // namespace
}  // namespace nomad_harvester::scenario
