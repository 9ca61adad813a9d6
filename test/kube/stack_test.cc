// SPDX-License-Identifier: Apache-2.0
// The client with all its decorators: which requests are repeated.
#include <memory>
#include <string>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/http/decorators.h"
#include "nomad_harvester/http/retry.h"
#include "nomad_harvester/kube/observed.h"
#include "nomad_harvester/runtime/random.h"

#include "kube/client_fixture.h"
#include "support/seeded_random.h"

namespace nomad_harvester::kube {
namespace {

using absl::StatusCode;
using support::IsOk;
using support::StatusIs;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

// Denies writes after the given number of them.
class CountingPermit final : public runtime::WritePermit {
 public:
  explicit CountingPermit(int writes) : left_(writes) {}
  absl::Status Check() const override {
    return left_-- > 0 ? absl::OkStatus() : base::FailedPrecondition("the Lease was lost");
  }
  base::Duration AttemptLimit() const override { return std::chrono::seconds(10); }

 private:
  mutable int left_;
};

class KubeStack : public ClientFixture {
 protected:
  void SetUp() override {
    http::RetryOptions retry;
    retry.permanently_refused = IsPermanentRefusal;
    auto with_token = http::WithToken(transport_, http::MakeStaticToken(base::Secret("first")),
                                      {.name = "Authorization", .prefix = "Bearer "});
    stack_ = std::make_unique<KubeClient>(
        http::WithRetry(std::move(with_token), retry,
                        std::shared_ptr<runtime::Random>(support::MakeSeededRandom(1)), {}));
  }
  absl::StatusOr<Observed> Create(const Json& metadata) {
    return stack_->Create(context_, kVirtualMachines, "default", {{"metadata", metadata}});
  }
  absl::StatusOr<Observed> Get() {
    return stack_->Get(context_, kVirtualMachines, "default", "web-1");
  }
  void ExpectSameRequest(std::size_t a, std::size_t b) const {
    EXPECT_EQ(transport_->requests()[a].target, transport_->requests()[b].target);
    EXPECT_EQ(transport_->requests()[a].body, transport_->requests()[b].body);
  }

  const Json named_ = {{"name", "web-1"}};
  std::unique_ptr<KubeClient> stack_;
};

TEST_F(KubeStack, C3_a_creation_whose_reply_is_lost_is_repeated_with_the_same_name) {
  transport_->Fail(base::Unavailable("the connection broke"));
  transport_->Reply(201, "{}");
  EXPECT_THAT(Create(named_), IsOk());
  ASSERT_THAT(transport_->requests(), SizeIs(2));
  ExpectSameRequest(0, 1);
}

// The caller then reads the object back: it may have been created by the first request.
TEST_F(KubeStack, C3_the_repetition_of_a_creation_that_took_effect_is_ALREADY_EXISTS) {
  transport_->Fail(base::Unavailable("the connection broke"));
  transport_->Reply(409, AlreadyExistsBody());
  EXPECT_TRUE(kube::IsAlreadyExists(Create(named_).status()));
  transport_->Reply(200, R"({"metadata":{"name":"web-1","annotations":{"action-id":"a"}}})");
  EXPECT_EQ(Get()->object["metadata"]["annotations"]["action-id"], "a");
}

TEST_F(KubeStack, a_request_rejected_with_429_is_sent_again_after_its_Retry_After) {
  const base::MonoTime before = clock_.Now();
  transport_->Reply(429, "Too many requests, please try again later.\n", {{"Retry-After", "3"}});
  transport_->Reply(200, "{}");
  EXPECT_THAT(stack_->MergePatch(context_, kVirtualMachines, "default", "web-1",
                                 {{"spec", Json::object()}}),
              IsOk());
  EXPECT_GE(clock_.Now() - before, std::chrono::seconds(3));
}

TEST_F(KubeStack, a_read_survives_a_lost_connection_and_a_server_that_restarts) {
  transport_->Fail(base::Unavailable("the connection broke"));
  transport_->Reply(503, "");
  transport_->Reply(500, StatusBody(500, "InternalError", "etcdserver: leader changed"));
  transport_->Reply(200, "{}");
  EXPECT_THAT(Get(), IsOk());
}

TEST_F(KubeStack, a_refusal_sent_as_500_is_not_retried) {
  for (const char* words :
       {"storage insufficient resources due to resource quota",
        "duplicate mac address present for vm default/web-1 for cluster network mgmt",
        "network-attachment-definitions.k8s.cni.cncf.io \"vlan1\" not found"}) {
    const std::size_t before = transport_->requests().size();
    transport_->Reply(500, StatusBody(500, "InternalError", Denied(words)));
    EXPECT_THAT(Create(named_), Not(StatusIs(StatusCode::kInternal))) << words;
    EXPECT_THAT(transport_->requests(), SizeIs(before + 1)) << words;
  }
}

// The webhook chooses the status of its denial, also one that otherwise asks for a later attempt.
TEST_F(KubeStack, L1_a_webhooks_denial_is_not_retried_whatever_its_status) {
  for (const int status : {400, 403, 409, 422, 429, 500, 503}) {
    const std::size_t before = transport_->requests().size();
    transport_->Reply(status, StatusBody(status, "", Denied("not with this image")),
                      {{"Retry-After", "1"}});
    EXPECT_TRUE(IsRefused(Create(named_).status())) << status;
    EXPECT_THAT(transport_->requests(), SizeIs(before + 1)) << status;
  }
}

TEST_F(KubeStack, a_refusal_is_an_answer) {
  for (const int status : {400, 401, 403, 404, 409, 422}) {
    const std::size_t before = transport_->requests().size();
    transport_->Reply(status, StatusBody(status, "", "no"));
    EXPECT_FALSE(Create(named_).ok());
    EXPECT_THAT(transport_->requests(), SizeIs(before + 1)) << status;
  }
}

TEST_F(KubeStack, C5_a_deletion_whose_reply_is_lost_is_repeated_with_its_preconditions) {
  transport_->Fail(base::Unavailable("the connection broke"));
  transport_->Reply(409, ConflictBody());
  EXPECT_TRUE(IsConflict(stack_->Delete(context_, kVirtualMachines, "default", "web-1",
                                        {.uid = "u-1", .resource_version = "77"})));
  ExpectSameRequest(0, 1);
  EXPECT_THAT(transport_->requests()[1].body, HasSubstr("\"77\""));
}

TEST_F(KubeStack, a_conditional_patch_is_repeated_and_an_unconditional_one_is_not) {
  transport_->Fail(base::Unavailable("the connection broke"));
  transport_->Reply(409, ConflictBody());
  EXPECT_TRUE(IsConflict(stack_
                             ->MergePatch(context_, kVirtualMachines, "default", "web-1",
                                          {{"metadata", {{"resourceVersion", "77"}}}})
                             .status()));
  ExpectSameRequest(0, 1);
  transport_->Fail(base::Unavailable("the connection broke"));
  EXPECT_THAT(stack_->MergePatch(context_, kVirtualMachines, "default", "web-1",
                                 {{"spec", Json::object()}}),
              StatusIs(StatusCode::kUnavailable));
  EXPECT_THAT(transport_->requests(), SizeIs(3));
}

TEST_F(KubeStack, each_attempt_of_a_write_asks_for_permission_and_a_read_never_does) {
  const runtime::Context guarded =
      context_.WithWritePermit(std::make_shared<CountingPermit>(/*writes=*/1));
  transport_->Fail(base::Unavailable("the connection broke"));
  EXPECT_THAT(stack_->Create(guarded, kVirtualMachines, "default", {{"metadata", named_}}),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("the Lease was lost")));
  EXPECT_THAT(transport_->requests(), SizeIs(1));
  transport_->Reply(200, "{}");
  EXPECT_THAT(stack_->Get(guarded, kVirtualMachines, "default", "web-1"), IsOk());
}

TEST_F(KubeStack, C13_a_dry_run_and_a_question_pass_where_no_write_is_permitted) {
  const runtime::Context reads_only =
      context_.WithWritePermit(std::make_shared<CountingPermit>(/*writes=*/0));
  transport_->Reply(201, "{}");
  EXPECT_THAT(stack_->Create(reads_only, kVirtualMachines, "default", {{"metadata", named_}},
                             /*dry_run=*/true),
              IsOk());
  transport_->Reply(201, "{}");
  EXPECT_THAT(stack_->CreateReview(reads_only, "/apis/x", Json::object()), IsOk());
  EXPECT_FALSE(
      stack_->Delete(reads_only, kVirtualMachines, "default", "web-1", {.uid = "u-1"}).ok());
}

TEST_F(KubeStack, a_refused_permit_is_not_a_conflict) {
  const runtime::Context reads_only =
      context_.WithWritePermit(std::make_shared<CountingPermit>(/*writes=*/0));
  EXPECT_FALSE(
      IsConflict(stack_->Delete(reads_only, kVirtualMachines, "default", "web-1", {.uid = "u-1"})));
  EXPECT_THAT(transport_->requests(), IsEmpty());
}

TEST_F(KubeStack, P3_no_error_holds_the_token) {
  for (const int status : {302, 400, 401, 403, 404, 422, 451}) {
    transport_->Reply(status, "refused", {{"Location", "https://other/"}});
    EXPECT_THAT(Get().status().ToString(), Not(HasSubstr("first"))) << status;
  }
}

}  // namespace
}  // namespace nomad_harvester::kube
