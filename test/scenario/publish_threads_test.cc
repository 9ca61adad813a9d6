// SPDX-License-Identifier: Apache-2.0
//
// Publications whose Nomad client hangs, beside Scales, in the threads of one process. Time passes
// only while every thread waits.

#include <chrono>
#include <iterator>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/runtime/random.h"

#include "nlohmann/json.hpp"
#include "process.h"
#include "support/recording_sink.h"
#include "support/seeded_random.h"
#include "support/status_matchers.h"
#include "support/threaded_clock.h"
#include "threaded_process.h"
#include "vm_facts.h"

namespace nomad_harvester::scenario {
namespace {

using simulator::Refusal;
using simulator::System;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using support::IsOk;

class PublishThreads : public testing::Test {
 protected:
  std::unique_ptr<ThreadedProcess> Start(const std::string& name) {
    return std::make_unique<ThreadedProcess>(
        clock_, ThreadedProcess::Options{
                    .name = name,
                    .transports = [this, name](const auto&) { return cluster_.Transports(name); },
                    .sink = log_,
                    .foreground = 16,
                    .background = 16});
  }
  void HangClients() {
    cluster_.Refuse({.system = System::kNomad,
                     .verb = "update",
                     .resource = "metadata",
                     .kind = Refusal::kNone,
                     .takes = hours(1)});
  }
  // How long it takes until the pool has so many VMs that are ready, and is asked for.
  base::Duration Scale(ThreadedProcess& process, std::int64_t count) {
    const base::MonoTime began = clock_.Now();
    const absl::Status scaled = process.Scale(context_, count, policy_);
    EXPECT_THAT(scaled, IsOk()) << log_->Text();
    for (;;) {
      const auto status = process.Status(policy_);
      EXPECT_THAT(status, IsOk());
      const bool is_done = status.ok() && status->ready && status->count == count &&
                           std::ssize(cluster_.Vms()) == count;
      if (is_done || clock_.Now() - began > minutes(5)) break;
      context_.Sleep(milliseconds(500)).IgnoreError();
    }
    return clock_.Now() - began;
  }
  int Posts() const { return cluster_.RequestCount(System::kNomad, "update", "metadata"); }

  support::ThreadedClock clock_;
  support::PassingTime passing_{clock_, milliseconds(100)};
  const runtime::Context context_ = runtime::Context::Background(clock_);
  const std::unique_ptr<runtime::Random> random_ = support::MakeSeededRandom(1);
  simulator::Cluster cluster_{clock_, *random_};
  const std::shared_ptr<support::RecordingSink> log_ = std::make_shared<support::RecordingSink>();
  scaling::StringMap policy_ = PolicyFor("web");
};

TEST_F(PublishThreads, L1_clients_that_hang_delay_no_scale) {
  const std::unique_ptr<ThreadedProcess> process = Start("test_1");
  ASSERT_TRUE(cluster_.PutObject(
      {{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", kNamespace}}}}));
  Scale(*process, 2);
  const base::Duration grows = Scale(*process, 4);
  const base::Duration shrinks = Scale(*process, 2);
  policy_["publish_host"] = "true";
  HangClients();
  EXPECT_LE(Scale(*process, 4), grows + seconds(2));
  EXPECT_GE(Posts(), 1) << "no publication was under way: the test shows nothing";
  EXPECT_LE(Scale(*process, 2), shrinks + seconds(2));
}

TEST_F(PublishThreads, L1_L9_the_background_that_waits_for_a_client_leaves_the_pool_to_a_scale) {
  const std::unique_ptr<ThreadedProcess> process = Start("test_1");
  policy_["publish_host"] = "true";
  HangClients();
  Scale(*process, 2);
  const base::Duration grows = Scale(*process, 3);
  ASSERT_THAT(process->Status(policy_), IsOk());
  const int before = Posts();
  while (Posts() == before) ASSERT_THAT(context_.Sleep(milliseconds(200)), IsOk());
  EXPECT_LE(Scale(*process, 4), grows + seconds(2)) << log_->Text();
  // The Lease was released, although posts got no reply: another process need not wait for its end.
  process->Stop(minutes(1));
  const std::unique_ptr<ThreadedProcess> other = Start("test_2");
  EXPECT_LE(Scale(*other, 5), grows + seconds(2)) << log_->Text();
}

}  // namespace
}  // namespace nomad_harvester::scenario
