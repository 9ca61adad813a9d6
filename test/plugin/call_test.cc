// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "nomad_harvester/runtime/clock.h"

#include "dispatcher.h"

namespace nomad_harvester::plugin {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(TimeToWork, LeavesATenthForTheReplyButNotMoreThanAQuarterSecond) {
  EXPECT_EQ(TimeToWork(seconds(1)), milliseconds(900));
  EXPECT_EQ(TimeToWork(milliseconds(7500)), milliseconds(7250));
  EXPECT_EQ(TimeToWork(std::chrono::hours(1)), std::chrono::hours(1) - milliseconds(250));
  EXPECT_EQ(TimeToWork(base::Duration::zero()), base::Duration::zero());
}

class CountingRpc final : public OpenRpc {
 public:
  void End(const grpc::Status& status) override {
    ++ends;
    code = status.error_code();
  }
  int ends = 0;
  grpc::StatusCode code = grpc::StatusCode::OK;
};

class RegistryTest : public ::testing::Test {
 protected:
  runtime::Context For(base::Duration timeout) {
    return runtime::Context::Background(*clock_).WithTimeout(timeout);
  }
  std::unique_ptr<runtime::Clock> clock_ = runtime::MakeSystemClock();
  CallRegistry registry_;
};

TEST_F(RegistryTest, EndsWhatIsOpenAndNothingElse) {
  const auto open = std::make_shared<CountingRpc>();
  const auto done = std::make_shared<CountingRpc>();
  ASSERT_TRUE(registry_.Add(open));
  ASSERT_TRUE(registry_.Add(done));
  registry_.Remove(done);
  registry_.EndAll({grpc::StatusCode::CANCELLED, "x"});
  EXPECT_EQ(open->ends, 1);
  EXPECT_EQ(open->code, grpc::StatusCode::CANCELLED);
  EXPECT_EQ(done->ends, 0);
}

TEST_F(RegistryTest, TakesNothingAfterClose) {
  registry_.Close();
  EXPECT_FALSE(registry_.Add(std::make_shared<CountingRpc>()));
  EXPECT_EQ(registry_.WaitUntilNone(For(seconds(60))), 0U);
}

TEST_F(RegistryTest, TheWaitEndsWithTheLastCall) {
  const auto rpc = std::make_shared<CountingRpc>();
  registry_.Add(rpc);
  std::thread remover([&] { registry_.Remove(rpc); });
  EXPECT_EQ(registry_.WaitUntilNone(For(seconds(60))), 0U);
  remover.join();
}

TEST_F(RegistryTest, TheWaitEndsWithItsTimeAndCountsWhatIsLeft) {
  const auto first = std::make_shared<CountingRpc>();
  const auto second = std::make_shared<CountingRpc>();
  registry_.Add(first);
  registry_.Add(second);
  EXPECT_EQ(registry_.WaitUntilNone(For(milliseconds(1))), 2U);
}

TEST_F(RegistryTest, RemovingWhatIsNotThereIsHarmless) {
  registry_.Remove(std::make_shared<CountingRpc>());
  EXPECT_EQ(registry_.WaitUntilNone(For(seconds(60))), 0U);
}

TEST_F(RegistryTest, AnEndThatRemovesItselfDoesNotBlock) {
  class SelfRemoving final : public OpenRpc, public std::enable_shared_from_this<SelfRemoving> {
   public:
    explicit SelfRemoving(CallRegistry& registry) : registry_(registry) {}
    void End(const grpc::Status&) override { registry_.Remove(shared_from_this()); }

   private:
    CallRegistry& registry_;
  };
  for (int i = 0; i < 3; ++i) registry_.Add(std::make_shared<SelfRemoving>(registry_));
  registry_.EndAll(grpc::Status::OK);
  EXPECT_EQ(registry_.WaitUntilNone(For(milliseconds(1))), 0U);
}

}  // namespace
}  // namespace nomad_harvester::plugin
