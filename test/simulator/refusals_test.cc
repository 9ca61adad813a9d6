// SPDX-License-Identifier: Apache-2.0
// Refusals that last, by verb and object.
#include "simulator_fixture.h"

namespace nomad_harvester::simulator {
namespace {

using absl::StatusCode;
using http::Method;

constexpr char kVm1[] = "/apis/kubevirt.io/v1/namespaces/nomad/virtualmachines/vm-1";
constexpr char kMerge[] = "application/merge-patch+json";

class RefusalsTest : public SimulatorTest {
 protected:
  // What the API server says to a PATCH of the VM vm-1 by a rule of that kind.
  http::HttpResponse PatchRefusedAs(Refusal kind) {
    RefusalRule rule;
    rule.verb = "patch";
    rule.kind = kind;
    const int id = cluster().Refuse(rule);
    http::HttpResponse reply = Ask(System::kHarvester, Method::kPatch, kVm1, "{}", kMerge);
    cluster().StopRefusing(id);
    return reply;
  }
  http::HttpResponse DrainRefusedAs(const std::string& node, Refusal kind) {
    RefusalRule rule;
    rule.system = System::kNomad;
    rule.resource = "drain";
    rule.kind = kind;
    const int id = cluster().Refuse(rule);
    http::HttpResponse reply =
        Ask(System::kNomad, Method::kPost, "/v1/node/" + node + "/drain", "{\"DrainSpec\":{}}");
    cluster().StopRefusing(id);
    return reply;
  }
  static json Body(const http::HttpResponse& reply) { return json::parse(reply.body); }
};

TEST_F(RefusalsTest, One_object_is_refused_until_the_rule_goes_and_the_others_are_not) {
  MakeVm("vm-1");
  MakeVm("vm-2");
  const int id = cluster().Refuse({.verb = "patch", .resource = "virtualmachines", .name = "vm-1"});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Ask(System::kHarvester, Method::kPatch, kVm1, "{}", kMerge).status, 403);
    Wait(minutes(10));
  }
  EXPECT_THAT(
      kube().MergePatch(context_, kube::kVirtualMachines, "nomad", "vm-2", json::object()).status(),
      IsOk());
  EXPECT_THAT(kube().Get(context_, kube::kVirtualMachines, "nomad", "vm-1").status(), IsOk());
  EXPECT_EQ(cluster().RequestCount(System::kHarvester, "patch", "virtualmachines"), 4);
  cluster().StopRefusing(id);
  EXPECT_EQ(Ask(System::kHarvester, Method::kPatch, kVm1, "{}", kMerge).status, 200);
}

TEST_F(RefusalsTest, A_refused_request_changes_nothing_and_has_the_servers_time) {
  cluster().Refuse({.verb = "create", .resource = "secrets"});
  Wait(seconds(61));
  const auto made = kube().Create(context_, kube::kSecrets, "nomad", SecretFor("vm-1"));
  EXPECT_THAT(made.status(), StatusIs(StatusCode::kPermissionDenied, HasSubstr("is forbidden")));
  EXPECT_THAT(cluster().Secrets(), IsEmpty());
  EXPECT_EQ(Ask(System::kHarvester, Method::kPost, "/api/v1/namespaces/nomad/secrets",
                SecretFor("vm-1").dump())
                .headers.Find("Date"),
            "Thu, 01 Jan 2026 00:01:01 GMT");
  cluster().StopRefusing();
  EXPECT_THAT(kube().Create(context_, kube::kSecrets, "nomad", SecretFor("vm-1")), IsOk());
}

TEST_F(RefusalsTest, Kubernetes_refuses_with_its_own_reasons_and_texts) {
  MakeVm("vm-1");
  struct Row {
    Refusal kind;
    int status;
    std::string reason;
    std::string text;
  };
  const std::vector<Row> rows = {
      {Refusal::kForbidden, 403, "Forbidden",
       "virtualmachines.kubevirt.io \"vm-1\" is forbidden: User "},
      {Refusal::kUnavailable, 503, "ServiceUnavailable", "apiserver is shutting down"}};
  for (const Row& row : rows) {
    const http::HttpResponse reply = PatchRefusedAs(row.kind);
    EXPECT_EQ(reply.status, row.status) << row.reason;
    EXPECT_EQ(Body(reply)["kind"], "Status");
    EXPECT_EQ(Body(reply)["code"], row.status);
    EXPECT_EQ(Body(reply)["reason"], row.reason);
    EXPECT_THAT(Body(reply)["message"].get<std::string>(), HasSubstr(row.text));
  }
  EXPECT_EQ(PatchRefusedAs(Refusal::kUnavailable).headers.Find("Retry-After"), "1");
}

TEST_F(RefusalsTest, Nomad_refuses_with_its_own_texts) {
  const std::string id = AddNode("n");
  EXPECT_EQ(DrainRefusedAs(id, Refusal::kForbidden).status, 403);
  EXPECT_EQ(DrainRefusedAs(id, Refusal::kForbidden).body, "Permission denied");
  const http::HttpResponse no_leader = DrainRefusedAs(id, Refusal::kUnavailable);
  EXPECT_EQ(no_leader.status, 500);
  EXPECT_EQ(no_leader.body, "rpc error: No cluster leader");
  EXPECT_FALSE(nomad().GetNode(context_, id)->value.draining);
}

TEST_F(RefusalsTest, Any_answer_can_be_given) {
  cluster().Refuse({.resource = "secrets",
                    .kind = Refusal::kAnswer,
                    .status = 502,
                    .text = "<html><title>Bad Gateway</title></html>"});
  const auto list = kube::ListNames(kube(), context_, kube::kSecrets, "nomad");
  EXPECT_THAT(list, StatusIs(StatusCode::kUnavailable, HasSubstr("Bad Gateway")));
}

TEST_F(RefusalsTest, A_request_for_a_missing_object_is_refused_too) {
  EXPECT_EQ(PatchRefusedAs(Refusal::kForbidden).status, 403);
  EXPECT_EQ(DrainRefusedAs("nobody", Refusal::kForbidden).status, 403);
}

TEST_F(RefusalsTest, Trials_and_reviews_are_refused_only_by_a_rule_that_names_their_verb) {
  const auto attempt = [&] {
    return kube()
        .Create(context_, kube::kVirtualMachines, "nomad", VmNamed("vm-1"), /*dry_run=*/true)
        .status();
  };
  const auto review = [&] {
    return Ask(System::kHarvester, Method::kPost,
               "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", "{}");
  };
  cluster().Refuse({});
  EXPECT_THAT(attempt(), IsOk());
  EXPECT_EQ(review().status, 201);
  cluster().Refuse({.verb = "try"});
  EXPECT_THAT(attempt(), StatusIs(StatusCode::kPermissionDenied));
  EXPECT_EQ(review().status, 201);
  cluster().Refuse({.verb = "ask"});
  EXPECT_EQ(review().status, 403);
  EXPECT_THAT(review().body, HasSubstr("cannot create resource \\\"selfsubjectrulesreviews\\\""));
}

TEST_F(RefusalsTest, A_rule_may_only_be_slow) {
  MakeVm("vm-1");
  cluster().Refuse({.verb = "get", .kind = Refusal::kNone, .takes = std::chrono::seconds(5)});
  const auto start = clock_.Now();
  EXPECT_THAT(kube().Get(context_, kube::kVirtualMachines, "nomad", "vm-1"), IsOk());
  EXPECT_EQ(clock_.Now() - start, seconds(5));
  EXPECT_THAT(kube::ListNames(kube(), context_, kube::kVirtualMachines, "nomad"), IsOk());
  EXPECT_EQ(clock_.Now() - start, seconds(5));
  EXPECT_THAT(kube().Get(context_.WithTimeout(seconds(2)), kube::kVirtualMachines, "nomad", "vm-1"),
              StatusIs(StatusCode::kDeadlineExceeded));
}

TEST_F(RefusalsTest, The_oldest_rule_that_refuses_decides_and_the_slowest_takes_its_time) {
  MakeVm("vm-1");
  cluster().Refuse({.kind = Refusal::kNone, .takes = std::chrono::seconds(3)});
  const int first = cluster().Refuse({.verb = "patch", .kind = Refusal::kUnavailable});
  cluster().Refuse({.kind = Refusal::kForbidden, .takes = std::chrono::seconds(1)});
  const auto start = clock_.Now();
  EXPECT_EQ(Ask(System::kHarvester, Method::kPatch, kVm1, "{}", kMerge).status, 503);
  EXPECT_EQ(clock_.Now() - start, seconds(3));
  cluster().StopRefusing(first);
  EXPECT_EQ(Ask(System::kHarvester, Method::kPatch, kVm1, "{}", kMerge).status, 403);
}

TEST_F(RefusalsTest, A_request_that_arrives_late_is_refused_too) {
  cluster().SetFaultHook([](const RequestInfo&) { return Fault::Delay(std::chrono::seconds(20)); });
  cluster().Refuse({.verb = "create"});
  EXPECT_THAT(
      kube()
          .Create(context_.WithTimeout(seconds(5)), kube::kSecrets, "nomad", SecretFor("vm-1"))
          .status(),
      StatusIs(StatusCode::kDeadlineExceeded));
  Wait(minutes(1));
  EXPECT_THAT(cluster().Secrets(), IsEmpty());
}

}  // namespace
}  // namespace nomad_harvester::simulator
