// SPDX-License-Identifier: Apache-2.0
//
// When publications run, which the loop's passes do not wait for. On threads: publish_threads_test.

#include "execution/publication.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pool_fixture.h"
#include "support/manual_executor.h"

namespace nomad_harvester::scaling {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

class PublicationsTest : public PoolFixture {
 protected:
  PublicationsTest() {
    for (const char* vm : {"web-a", "web-b"}) AddVm(vm);
    auto seen = Reconciler(Deps(), policy_).Observe(context());
    EXPECT_THAT(seen, support::IsOk());
    decisions_.emplace(*std::move(seen));
    for (const char* vm : {"web-a", "web-b"}) {
      Decisions::Entry& entry = entries_.emplace_back(*decisions_->Find(vm));
      entry.step = {.kind = StepKind::kUnpublishHost, .node_id = NodeOf(vm)};
    }
    Forget();
  }
  // Those of the first `count` VMs.
  void Start(Publications& publications, const runtime::Context& context, std::size_t count) {
    std::vector<const Decisions::Entry*> due;
    for (std::size_t i = 0; i < count; ++i) due.push_back(&entries_[i]);
    publications.Start(context, due, decisions_->snapshot().seen, clock_.Now());
  }
  // How many more may begin.
  std::size_t TurnsLeft() {
    std::vector<std::shared_ptr<void>> turns;
    while (auto turn = hosts_.BeginPublication()) turns.push_back(std::move(turn));
    return turns.size();
  }

  static constexpr char kSets[] = "update metadata";
  support::ManualExecutor later_;
  const PoolDependencies deps_ = Deps(later_);
  std::optional<Decisions> decisions_;
  std::vector<Decisions::Entry> entries_;
};

TEST_F(PublicationsTest, L1_one_that_has_not_ended_does_not_hold_up_who_started_it) {
  Publications publications(deps_);
  Start(publications, context(), 1);
  EXPECT_TRUE(publications.any());
  EXPECT_THAT(publications.TakeEnded(), IsEmpty());
  Start(publications, context(), 1);
  EXPECT_EQ(later_.RunAll(), 1U) << "it is not started again";
  EXPECT_EQ(Count(kSets), 1U);
  EXPECT_FALSE(publications.any());
  EXPECT_THAT(publications.TakeEnded(), SizeIs(1));
}

TEST_F(PublicationsTest, L9_the_end_drops_what_has_not_begun) {
  Publications publications(deps_);
  Start(publications, context(), 2);
  publications.End();
  later_.RunAll();
  EXPECT_FALSE(publications.any());
  EXPECT_THAT(Sent(), IsEmpty());
  EXPECT_EQ(TurnsLeft(), 4U);
}

// As when a resumption goes on after it has begun a replacement.
TEST_F(PublicationsTest, L1_those_of_the_next_run_are_published_after_the_end_of_one) {
  Publications publications(deps_);
  Start(publications, context(), 1);
  publications.End();
  Start(publications, context(), 2);
  publications.Await();
  EXPECT_EQ(Count(kSets), 2U);
}

TEST_F(PublicationsTest, the_executor_may_call_after_they_are_gone) {
  {
    Publications publications(deps_);
    Start(publications, context(), 1);
  }
  EXPECT_EQ(later_.RunAll(), 1U);
  EXPECT_THAT(Sent(), IsEmpty());
}

TEST_F(PublicationsTest, who_awaits_them_runs_those_that_have_not_begun_and_has_them_all_once) {
  Publications publications(deps_);
  Start(publications, context(), 2);
  publications.Await();
  EXPECT_FALSE(publications.any());
  EXPECT_EQ(Count(kSets), 2U);
  EXPECT_THAT(publications.TakeEnded(), SizeIs(2));
  EXPECT_THAT(publications.TakeEnded(), IsEmpty());
}

TEST_F(PublicationsTest, L1_one_for_which_the_executor_has_no_room_is_gone_and_holds_no_turn) {
  Publications publications(deps_);
  Start(publications, context(), 1);
  later_.set_refusal(absl::ResourceExhaustedError("full"));
  Start(publications, context(), 2);
  EXPECT_EQ(TurnsLeft(), 3U) << "one waits to begin";
  later_.RunAll();
  EXPECT_FALSE(publications.any());
  EXPECT_THAT(publications.TakeEnded(), SizeIs(1));
  EXPECT_EQ(TurnsLeft(), 4U);
}

TEST_F(PublicationsTest, L8_one_that_finds_no_turn_waits) {
  const std::vector<std::shared_ptr<void>> turns = {
      hosts_.BeginPublication(), hosts_.BeginPublication(), hosts_.BeginPublication()};
  Publications publications(deps_);
  Start(publications, context(), 2);
  EXPECT_EQ(later_.RunAll(), 1U);
  EXPECT_TRUE(publications.any()) << "the other one";
  Start(publications, context(), 2);
  publications.Await();
  EXPECT_FALSE(publications.any());
}

TEST_F(PublicationsTest, L9_a_context_that_ends_ends_them) {
  const runtime::CancelSource call(context());
  Next(kSets, simulator::Fault::DropReply());
  Publications publications(deps_);
  Start(publications, call.context(), 1);
  call.Cancel(runtime::CancelReason::kClient);
  publications.Await();
  const std::vector<Effect> ended = publications.TakeEnded();
  ASSERT_THAT(ended, SizeIs(1));
  EXPECT_EQ(ended[0].verdict, Verdict::kCancelled);
}

}  // namespace
}  // namespace nomad_harvester::scaling
