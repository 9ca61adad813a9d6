// SPDX-License-Identifier: Apache-2.0
#include "support/fake_clock.h"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "nomad_harvester/base/time.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace nomad_harvester::support {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

// Records each call with its second after the start.
class Journal {
 public:
  explicit Journal(FakeClock& clock) : clock_(clock), start_(clock.Now()) {}
  void Note(const std::string& what) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(clock_.Now() - start_);
    entries_.push_back(what + "@" + std::to_string(seconds.count()));
  }
  std::function<void()> Noting(const std::string& what) {
    return [this, what] { Note(what); };
  }
  const std::vector<std::string>& entries() const { return entries_; }

 private:
  FakeClock& clock_;
  base::MonoTime start_;
  std::vector<std::string> entries_;
};

bool Sleep(FakeClock& clock, base::Duration duration, std::stop_token stop = {}) {
  return clock.SleepUntil(clock.Now() + duration, std::move(stop));
}

TEST(FakeClock, Starts_with_the_year_2026_and_both_clocks_move_together) {
  FakeClock clock;
  EXPECT_EQ(base::FormatRfc3339Nanos(clock.WallNow()), "2026-01-01T00:00:00Z");
  EXPECT_GT(clock.Now(), base::MonoTime());
  clock.Advance(90s);
  EXPECT_TRUE(Sleep(clock, 30s));
  EXPECT_EQ(base::FormatRfc3339Nanos(clock.WallNow()), "2026-01-01T00:02:00Z");
}

TEST(FakeClock, The_wall_clock_can_be_set_and_the_other_does_not_care) {
  FakeClock clock;
  const base::MonoTime start = clock.Now();
  clock.set_wall_skew(-1h);
  EXPECT_EQ(base::FormatRfc3339(clock.WallNow()), "2025-12-31T23:00:00Z");
  EXPECT_EQ(clock.Now(), start);
}

TEST(FakeClock, Callbacks_run_in_order_of_time_and_then_in_order_of_creation) {
  FakeClock clock;
  Journal journal(clock);
  clock.After(5s, journal.Noting("c"));
  clock.After(2s, journal.Noting("a"));
  clock.After(5s, journal.Noting("d"));
  clock.After(3s, journal.Noting("b"));
  clock.After(11s, journal.Noting("late"));
  EXPECT_TRUE(Sleep(clock, 10s));
  journal.Note("awake");
  EXPECT_THAT(journal.entries(), ElementsAre("a@2", "b@3", "c@5", "d@5", "awake@10"));
}

TEST(FakeClock, A_callback_in_the_past_runs_at_the_next_step_and_the_time_does_not_change) {
  FakeClock clock;
  Journal journal(clock);
  clock.Advance(10s);
  clock.At(clock.Now() - 5s, journal.Noting("overdue"));
  clock.Advance(0s);
  EXPECT_THAT(journal.entries(), ElementsAre("overdue@10"));
}

TEST(FakeClock, Advance_calls_what_falls_due_its_end_included) {
  FakeClock clock;
  Journal journal(clock);
  clock.After(3s, journal.Noting("a"));
  clock.After(4s, journal.Noting("b"));
  clock.Advance(3s);
  EXPECT_THAT(journal.entries(), ElementsAre("a@3"));
}

TEST(FakeClock, Every_repeats_until_its_task_is_destroyed) {
  FakeClock clock;
  Journal journal(clock);
  auto task = clock.Every(3s, journal.Noting("tick"));
  clock.Advance(7s);
  EXPECT_THAT(journal.entries(), ElementsAre("tick@3", "tick@6"));
  task.reset();
  clock.Advance(60s);
  EXPECT_THAT(journal.entries(), ElementsAre("tick@3", "tick@6"));
}

TEST(FakeClock, A_slow_call_delays_the_next_and_is_never_entered_twice) {
  FakeClock clock;
  Journal journal(clock);
  int inside = 0;
  const auto task = clock.Every(3s, [&] {
    ASSERT_EQ(++inside, 1);
    journal.Note("begin");
    Sleep(clock, 7s);
    journal.Note("end");
    --inside;
  });
  clock.Advance(12s);
  EXPECT_THAT(journal.entries(), ElementsAre("begin@3", "end@10", "begin@10", "end@17"));
}

TEST(FakeClock, A_stop_that_was_requested_before_prevents_the_sleep) {
  FakeClock clock;
  Journal journal(clock);
  clock.After(1s, journal.Noting("never"));
  std::stop_source source;
  source.request_stop();
  EXPECT_FALSE(Sleep(clock, 5s, source.get_token()));
  EXPECT_THAT(journal.entries(), IsEmpty());
}

TEST(FakeClock, A_callback_can_stop_the_sleep) {
  FakeClock clock;
  Journal journal(clock);
  std::stop_source source;
  clock.After(2s, [&] { source.request_stop(); });
  clock.After(3s, journal.Noting("never"));
  EXPECT_FALSE(Sleep(clock, 5s, source.get_token()));
  journal.Note("awake");
  EXPECT_THAT(journal.entries(), ElementsAre("awake@2"));
}

TEST(FakeClock, A_nested_sleep_moves_the_time_and_the_outer_one_continues_from_there) {
  FakeClock clock;
  Journal journal(clock);
  clock.After(2s, [&] {
    journal.Note("outer");
    EXPECT_TRUE(Sleep(clock, 10s));
    journal.Note("slept");
  });
  clock.After(4s, journal.Noting("inner"));
  EXPECT_TRUE(Sleep(clock, 5s));
  journal.Note("awake");
  EXPECT_THAT(journal.entries(), ElementsAre("outer@2", "inner@4", "slept@12", "awake@12"));
}

TEST(FakeClock, Callbacks_may_add_and_remove_callbacks) {
  FakeClock clock;
  Journal journal(clock);
  std::unique_ptr<runtime::PeriodicTask> task;
  clock.After(1s, [&] {
    clock.After(1s, journal.Noting("added"));
    clock.After(0s, journal.Noting("now"));
    task = clock.Every(2s, journal.Noting("tick"));
  });
  clock.After(6s, [&] { task.reset(); });
  clock.Advance(20s);
  EXPECT_THAT(journal.entries(), ElementsAre("now@1", "added@2", "tick@3", "tick@5"));
}

TEST(FakeClock, An_exception_reaches_the_sleeper_and_the_clock_remains_usable) {
  FakeClock clock;
  Journal journal(clock);
  const auto task = clock.Every(2s, [&] {
    journal.Note("tick");
    if (journal.entries().size() == 1) throw std::runtime_error("killed");
  });
  clock.After(3s, journal.Noting("after"));
  EXPECT_THROW(Sleep(clock, 10s), std::runtime_error);
  journal.Note("caught");
  clock.Advance(3s);
  EXPECT_THAT(journal.entries(), ElementsAre("tick@2", "caught@2", "after@3", "tick@4"));
}

TEST(FakeClock, An_exception_passes_through_nested_sleeps) {
  FakeClock clock;
  clock.After(1s, [&] { Sleep(clock, 5s); });
  clock.After(2s, [] { throw std::runtime_error("killed"); });
  EXPECT_THROW(Sleep(clock, 10s), std::runtime_error);
}

TEST(FakeClock, A_sleep_that_nothing_ends_is_an_error) {
  FakeClock clock;
  EXPECT_THROW(clock.SleepUntil(base::MonoTime::max(), {}), std::logic_error);
  const auto task = clock.Every(24h, [] {});
  EXPECT_THROW(clock.SleepUntil(base::MonoTime::max(), {}), std::logic_error);
  std::stop_source source;
  clock.After(24h, [&] { source.request_stop(); });
  EXPECT_FALSE(clock.SleepUntil(base::MonoTime::max(), source.get_token()));
}

TEST(FakeClock, A_task_may_outlive_its_clock) {
  auto clock = std::make_optional<FakeClock>();
  auto held = std::make_shared<int>(0);
  auto task = clock->Every(1s, [held] {});
  clock->After(1s, [held] {});
  clock.reset();
  task.reset();
  EXPECT_EQ(held.use_count(), 1);
}

// A callback that owns a task: dropping the clock drops both.
TEST(FakeClock, A_callback_may_own_a_task_of_the_same_clock) {
  FakeClock clock;
  Journal journal(clock);
  std::shared_ptr<runtime::PeriodicTask> task = clock.Every(2s, journal.Noting("tick"));
  clock.After(3s, [owned = std::move(task)] {});
  clock.Advance(10s);
  EXPECT_THAT(journal.entries(), ElementsAre("tick@2"));

  FakeClock other;
  other.After(3s, [owned = std::shared_ptr(other.Every(2s, [] {}))] {});
}

}  // namespace
}  // namespace nomad_harvester::support
