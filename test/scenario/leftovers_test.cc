// SPDX-License-Identifier: Apache-2.0
//
// The next Status finishes what an action could not, also in the same process.

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
  h.Tick(minutes(1));  // the sweep at the start of a process
  h.cluster.SetFaultHook([](const RequestInfo& request) {
    return request.resource == "secrets" && request.verb == "patch" ? Fault::Drop() : Fault::None();
  });
  ASSERT_TRUE(h.Scale(2).ok());
  h.cluster.SetFaultHook(nullptr);
  h.Tick(minutes(1));
  h.CheckAtRest(2);
}

// Without a VM the Secret is garbage. It must be deleted even if no later Scale uses the name.
TEST(Leftovers, C10_a_secret_of_a_vm_that_was_never_created_is_deleted_even_as_the_only_leftover) {
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
  ASSERT_EQ(h.Secrets().size(), 1U);
  h.Tick(minutes(1));
  h.CheckAtRest(0);
}

TEST(Leftovers, a_scale_that_was_refused_starts_no_background_work) {
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
