// SPDX-License-Identifier: Apache-2.0
//
// Pools whose requests for their Lease are refused.

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lease_fixture.h"

namespace nomad_harvester::scaling {
namespace {

using support::IsOk;
using support::StatusIs;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr char kPage[] = "<html><head><title>403 Forbidden</title></head></html>";

// The verb that is refused.
class ForbiddenLeaseTest : public LeaseFixture, public testing::WithParamInterface<const char*> {
 protected:
  ForbiddenLeaseTest() {
    if (GetParam() == std::string("patch")) Hold("", ServerNow());
  }
  void ExpectRefused(PoolLease& lease) {
    EXPECT_THAT(Acquire(lease),
                StatusIs(absl::StatusCode::kPermissionDenied,
                         AllOf(HasSubstr("pool default/web needs its Lease; the token's Role in "
                                         "namespace default needs the rule {apiGroups: "
                                         "[coordination.k8s.io], resources: [leases], verbs: "
                                         "[get, create, patch]}"),
                               HasSubstr("403"))));
    EXPECT_FALSE(lease.held());
    EXPECT_FALSE(lease.permit()->Check().ok());
  }
};

TEST_P(ForbiddenLeaseTest, C11_a_403_is_an_error_with_the_rule_and_the_next_call_acquires_it) {
  const auto lease = Process();
  for (const char* body : {"", kPage}) {
    script_.Next(GetParam(), Fault::Answer(403, body));
    ExpectRefused(*lease);
  }
  cluster_.Forbid(GetParam(), "leases");
  for (int call = 0; call < 2; ++call) ExpectRefused(*lease);
  cluster_.AllowAll();
  ASSERT_THAT(Acquire(*lease), IsOk());
  EXPECT_EQ(Lease().holder, "me");
  EXPECT_EQ(script_.Count("ask"), 0U);
}

INSTANTIATE_TEST_SUITE_P(PoolLease, ForbiddenLeaseTest, testing::Values("get", "create", "patch"));

class RefusedLeaseTest : public LeaseFixture {};

TEST_F(RefusedLeaseTest, C11_a_lease_that_cannot_be_created_for_a_404_is_an_error) {
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
  EXPECT_FALSE(lease->held());
}

TEST_F(RefusedLeaseTest, C11_a_403_that_no_rule_would_end_does_not_name_the_rule) {
  const auto lease = Process();
  for (const char* message :
       {"leases.coordination.k8s.io is forbidden: unable to create new content in namespace "
        "default because it is being terminated",
        "admission webhook \"guard.example.org\" denied the request: no"}) {
    const nlohmann::json status = {{"kind", "Status"},
                                   {"status", "Failure"},
                                   {"code", 403},
                                   {"reason", "Forbidden"},
                                   {"message", message}};
    script_.Always("create", Fault::Answer(403, status.dump()));
    EXPECT_THAT(Acquire(*lease), StatusIs(absl::StatusCode::kPermissionDenied,
                                          AllOf(HasSubstr(message), Not(HasSubstr("apiGroups")))));
  }
}

TEST_F(RefusedLeaseTest, C11_a_403_of_a_read_alone_does_not_end_the_hold) {
  const auto lease = Process();
  script_.Next("get", Fault::Answer(403, kPage));
  EXPECT_THAT(lease->Refresh(context_), StatusIs(absl::StatusCode::kPermissionDenied));
  EXPECT_FALSE(lease->is_known());
  ASSERT_THAT(Acquire(*lease), IsOk());
  script_.Next("get", Fault::Answer(403, kPage));
  EXPECT_THAT(lease->Refresh(context_), StatusIs(absl::StatusCode::kPermissionDenied));
  EXPECT_TRUE(lease->held());
}

}  // namespace
}  // namespace nomad_harvester::scaling
