// SPDX-License-Identifier: Apache-2.0
//
// Pools without a Lease: the rights review denies it, or it is disabled. And pools that need
// theirs, although a request for it was refused.

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lease_fixture.h"

namespace nomad_harvester::scaling {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using support::IsOk;
using support::StatusIs;
using testing::Each;
using testing::HasSubstr;

constexpr char kPage[] = "<html><head><title>403 Forbidden</title></head></html>";
constexpr char kUnknownRole[] =
    R"({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403,
        "message": "leases is forbidden: User \"u\" cannot get resource \"leases\": RBAC: role not found"})";

Fault Review(const std::string& status) {
  return Fault::Answer(201, R"({"kind": "SelfSubjectAccessReview", "status": )" + status + "}");
}

class UnguardedPoolTest : public LeaseFixture {
 protected:
  // Whether the pool still needs its Lease, and the call was refused.
  void ExpectRefused(PoolLease& lease, const std::string& why) {
    EXPECT_THAT(Acquire(lease), StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr(why)));
    EXPECT_TRUE(lease.used());
    EXPECT_FALSE(lease.held());
    EXPECT_FALSE(lease.permit()->Check().ok());
    EXPECT_EQ(Warnings(), 0U) << sink_->Text();
  }
  // Those of the questions that were asked.
  std::vector<std::string> Asked(const char* attribute) const {
    std::vector<std::string> asked;
    for (const simulator::RequestInfo& request : script_.requests()) {
      if (request.verb != "ask") continue;
      const auto question = nlohmann::json::parse(request.body);
      asked.push_back(question.at("spec").at("resourceAttributes").value(attribute, ""));
    }
    return asked;
  }
};

// The verb that is refused.
class ForbiddenLeaseTest : public UnguardedPoolTest,
                           public testing::WithParamInterface<const char*> {
 protected:
  ForbiddenLeaseTest() {
    if (GetParam() == std::string("patch")) Hold("", ServerNow());
  }
};

TEST_P(ForbiddenLeaseTest, C11_a_pool_whose_lease_the_review_denies_is_guarded_in_this_process) {
  cluster_.Forbid(GetParam(), "leases");
  const auto lease = Process();
  const auto remembered = base::WallTime(seconds(7));
  for (int call = 0; call < 3; ++call) {
    ASSERT_THAT(Acquire(*lease), IsOk());
    EXPECT_FALSE(lease->used());
    EXPECT_TRUE(lease->held());
    script_.Forget();
    clock_.Advance(minutes(5));
    EXPECT_THAT(lease->permit()->Check(), IsOk());
    EXPECT_THAT(lease->Store(context_, {.last_event = remembered}), IsOk());
    lease->Release(context_);
    EXPECT_FALSE(lease->held());
    EXPECT_FALSE(lease->permit()->Check().ok());
    EXPECT_EQ(script_.requests().size(), 0U);
    EXPECT_EQ(lease->record().last_event, remembered);
  }
  EXPECT_EQ(Warnings(), 1U) << sink_->Text();
  EXPECT_EQ(lost_, 0);
}

TEST_P(ForbiddenLeaseTest, C11_a_403_alone_is_an_error_and_the_next_call_acquires_it) {
  const auto lease = Process();
  for (const char* body : {"", kPage, kUnknownRole}) {
    script_.Next(GetParam(), Fault::Answer(403, body));
    ExpectRefused(*lease, "rights review allows what was refused");
  }
  ASSERT_THAT(Acquire(*lease), IsOk());
  EXPECT_TRUE(lease->used());
  EXPECT_EQ(Lease().holder, "me");
}

TEST_P(ForbiddenLeaseTest, C11_a_review_that_fails_or_does_not_know_every_role_decides_nothing) {
  const auto lease = Process();
  script_.Always(GetParam(), Fault::Answer(403, kUnknownRole));
  for (const Fault& reply :
       {Fault::Answer(403, kPage), Fault::Answer(403, kUnknownRole), Fault::Answer(200, kPage),
        Fault::Answer(201, "{}"), Fault::Answer(404, "404 page not found\n"), Fault::Answer(503),
        Fault::Drop()}) {
    script_.Always("ask", reply);
    ExpectRefused(*lease, "rights review failed");
  }
  script_.Always("ask", Review(R"({"allowed": false, "evaluationError": "role not found"})"));
  ExpectRefused(*lease, "could not evaluate every rule: role not found");
  script_.Always("ask", Review(R"({"allowed": false})"));
  ExpectRefused(*lease, "denies the token everything");
}

TEST_P(ForbiddenLeaseTest, C11_a_process_that_has_held_the_lease_never_acts_without_it) {
  const auto lease = Process();
  ASSERT_THAT(Acquire(*lease), IsOk());
  lease->Release(context_);
  Remove();
  if (GetParam() == std::string("patch")) Hold("", ServerNow());
  ASSERT_THAT(lease->Refresh(context_), IsOk());
  cluster_.Forbid(GetParam(), "leases");
  script_.Always("get", GetParam() == std::string("get") ? Fault::Answer(403) : Fault::None());
  if (GetParam() == std::string("get")) Hold("other", ServerNow());
  for (int call = 0; call < 2; ++call) {
    ExpectRefused(*lease, "this process has held it; only pool_lease = \"false\"");
  }
  EXPECT_EQ(script_.Count("ask"), 0U);
}

TEST_P(ForbiddenLeaseTest, C11_a_right_that_is_granted_later_changes_nothing_in_this_process) {
  cluster_.Forbid(GetParam(), "leases");
  const auto lease = Process();
  ASSERT_THAT(Acquire(*lease), IsOk());
  lease->Release(context_);
  cluster_.AllowAll();
  script_.Forget();
  ASSERT_THAT(Acquire(*lease), IsOk());
  EXPECT_FALSE(lease->used());
  EXPECT_EQ(script_.requests().size(), 0U);
  const auto next = Process();
  ASSERT_THAT(Acquire(*next), IsOk());
  EXPECT_TRUE(next->used());
}

INSTANTIATE_TEST_SUITE_P(PoolLease, ForbiddenLeaseTest, testing::Values("get", "create", "patch"));

TEST_F(UnguardedPoolTest, C11_a_role_may_grant_the_use_of_this_one_lease) {
  script_.Next("get", Fault::Answer(403));
  ExpectRefused(*Process(), "allows what was refused");
  EXPECT_EQ(Asked("verb"), (std::vector<std::string>{"get", "patch"}));
  EXPECT_THAT(Asked("name"), Each(harvester::LeaseName("web")));
  script_.Forget();
  script_.Next("create", Fault::Answer(403));
  ExpectRefused(*Process(), "allows what was refused");
  EXPECT_EQ(Asked("verb"), (std::vector<std::string>{"create"}));
  EXPECT_THAT(Asked("name"), Each("")) << "to the API server a creation has none";
  EXPECT_THAT(Asked("group"), Each("coordination.k8s.io"));
  EXPECT_THAT(Asked("namespace"), Each("default"));
}

TEST_F(UnguardedPoolTest, C11_a_lease_that_cannot_be_created_for_a_404_is_an_error) {
  const auto lease = Process();
  script_.Always("create",
                 Fault::Answer(404, R"({"kind": "Status", "status": "Failure", "code": 404,
                                        "reason": "NotFound",
                                        "message": "namespaces \"default\" not found"})"));
  EXPECT_THAT(Acquire(*lease), StatusIs(absl::StatusCode::kNotFound,
                                        HasSubstr("namespace default does not exist: create it")));
  script_.Always("create", Fault::Answer(404, "404 page not found\n"));
  EXPECT_THAT(Acquire(*lease),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("check harvester_url")));
  EXPECT_TRUE(lease->used());
  EXPECT_FALSE(lease->held());
  EXPECT_EQ(script_.Count("ask"), 0U);
}

TEST_F(UnguardedPoolTest, C11_a_403_of_a_read_alone_does_not_end_the_use_of_the_lease) {
  const auto lease = Process();
  script_.Next("get", Fault::Answer(403, kPage));
  EXPECT_THAT(lease->Refresh(context_), StatusIs(absl::StatusCode::kPermissionDenied));
  EXPECT_TRUE(lease->used());
  EXPECT_FALSE(lease->is_known());
  ASSERT_THAT(Acquire(*lease), IsOk());
  script_.Next("get", Fault::Answer(403, kPage));
  EXPECT_THAT(lease->Refresh(context_), StatusIs(absl::StatusCode::kPermissionDenied));
  EXPECT_TRUE(lease->used());
  EXPECT_TRUE(lease->held());
}

// As for a dry run.
TEST_F(UnguardedPoolTest, C11_a_read_that_the_review_denies_is_not_needed) {
  Hold("", ServerNow());
  Annotate(harvester::kLeasePausedAnnotation, "true");
  cluster_.Forbid("get", "leases");
  const auto lease = Process();
  ASSERT_THAT(lease->Refresh(context_), IsOk());
  EXPECT_FALSE(lease->used());
  EXPECT_TRUE(lease->is_known());
  EXPECT_EQ(lease->record(), PoolRecord{});
  EXPECT_EQ(Warnings(), 0U) << "nothing acts yet";
  script_.Forget();
  ASSERT_THAT(lease->Refresh(context_), IsOk());
  EXPECT_EQ(script_.requests().size(), 0U);
  ASSERT_THAT(Acquire(*lease), IsOk());
  EXPECT_EQ(Warnings(), 1U) << sink_->Text();
}

// A record of which this process is no longer the keeper must not pause the pool for ever.
TEST_F(UnguardedPoolTest, C11_what_was_read_of_a_lease_that_the_review_denies_is_forgotten) {
  Hold("", ServerNow());
  Annotate(harvester::kLeasePausedAnnotation, "true");
  const auto lease = Process();
  ASSERT_THAT(lease->Refresh(context_), IsOk());
  cluster_.Forbid("patch", "leases");
  ASSERT_THAT(Acquire(*lease), IsOk());
  EXPECT_EQ(lease->record(), PoolRecord{});
}

TEST_F(UnguardedPoolTest, disabled_it_sends_nothing_and_permits_everything) {
  const auto lease = Process("me", /*enabled=*/false);
  EXPECT_THAT(lease->Refresh(context_), IsOk());
  ASSERT_THAT(Acquire(*lease), IsOk());
  EXPECT_FALSE(lease->used());
  clock_.Advance(hours(1));
  EXPECT_THAT(lease->permit()->Check(), IsOk());
  EXPECT_THAT(lease->Store(context_, {.last_event = base::WallTime(seconds(1))}), IsOk());
  lease->Release(context_);
  EXPECT_EQ(lease->record().last_event, base::WallTime(seconds(1)));
  EXPECT_EQ(script_.requests().size(), 0U);
  EXPECT_EQ(Warnings(), 0U) << sink_->Text();
}

}  // namespace
}  // namespace nomad_harvester::scaling
