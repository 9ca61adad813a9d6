// SPDX-License-Identifier: Apache-2.0
#include "event_engine.h"

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "nomad_harvester/base/mutex.h"

namespace nomad_harvester::plugin {
namespace {

using grpc_event_engine::experimental::EventEngine;
using std::chrono::hours;
using std::chrono::milliseconds;

class EventEngineTest : public ::testing::Test {
 protected:
  // Waits until all that is due has run.
  void Flush() {
    std::promise<void> ran;
    engine_->RunAfter(milliseconds(30), [&ran] { ran.set_value(); });
    ran.get_future().wait();
  }
  void Note(const std::string& what) {
    base::MutexLock lock(mutex_);
    order_ += what;
  }
  std::string order() {
    base::MutexLock lock(mutex_);
    return order_;
  }

  std::unique_ptr<EventEngine> engine_ = MakeEventEngine();
  base::Mutex mutex_;
  std::string order_ NH_GUARDED_BY(mutex_);
};

TEST_F(EventEngineTest, runs_closures_in_order_and_timers_when_they_are_due) {
  engine_->RunAfter(hours(1), [this] { Note("never"); });
  engine_->Run([this] { Note("a"); });
  engine_->Run([this] { Note("b"); });
  engine_->RunAfter(milliseconds(10), [this] { Note("c"); });
  Flush();
  EXPECT_EQ(order(), "abc");
}

TEST_F(EventEngineTest, a_timer_that_comes_earlier_is_not_kept_waiting) {
  engine_->RunAfter(hours(1), [this] { Note("never"); });
  Flush();
  EXPECT_EQ(order(), "");
}

TEST_F(EventEngineTest, what_is_cancelled_never_runs_and_what_has_run_cannot_be_cancelled) {
  const EventEngine::TaskHandle later = engine_->RunAfter(hours(1), [this] { Note("cancelled"); });
  const EventEngine::TaskHandle done = engine_->RunAfter(milliseconds(0), [this] { Note("ran"); });
  EXPECT_TRUE(engine_->Cancel(later));
  EXPECT_FALSE(engine_->Cancel(later));
  Flush();
  EXPECT_FALSE(engine_->Cancel(done));
  EXPECT_EQ(order(), "ran");
}

TEST_F(EventEngineTest, knows_its_own_thread) {
  EXPECT_FALSE(engine_->IsWorkerThread());
  std::promise<bool> inside;
  engine_->Run([&] { inside.set_value(engine_->IsWorkerThread()); });
  EXPECT_TRUE(inside.get_future().get());
}

TEST_F(EventEngineTest, its_end_waits_for_the_closure_that_runs_and_drops_the_others) {
  std::promise<void> started;
  std::promise<void> release;
  engine_->Run([&] {
    started.set_value();
    release.get_future().wait();
    Note("ran");
  });
  engine_->RunAfter(hours(1), [this] { Note("dropped"); });
  started.get_future().wait();
  std::promise<void> ended;
  const std::jthread ending([&] {
    engine_.reset();
    ended.set_value();
  });
  release.set_value();
  ended.get_future().wait();
  EXPECT_EQ(order(), "ran");
}

TEST_F(EventEngineTest, a_closure_may_release_the_engine) {
  std::promise<void> released;
  EventEngine* const engine = engine_.get();
  engine->Run([this, &released] {
    engine_.reset();
    released.set_value();
  });
  released.get_future().wait();
  EXPECT_EQ(engine_, nullptr);
}

TEST_F(EventEngineTest, has_no_sockets) { EXPECT_EQ(engine_->GetDNSResolver({}), nullptr); }

}  // namespace
}  // namespace nomad_harvester::plugin
