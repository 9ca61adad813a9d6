// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/kube/access.h"

#include <string>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/kube/observed.h"

#include "kube/client_fixture.h"

namespace nomad_harvester::kube {
namespace {

using absl::StatusCode;
using support::IsOk;
using support::IsOkAndHolds;
using support::StatusIs;
using testing::HasSubstr;

class Access : public ClientFixture {
 protected:
  absl::StatusOr<bool> Ask(const ResourceAttributes& access) {
    return ReviewAccess(context_, client_, access);
  }
  absl::StatusOr<AccessRules> Fetch() { return FetchAccessRules(context_, client_, "default"); }
};

TEST_F(Access, one_right_is_checked_with_a_SelfSubjectAccessReview) {
  transport_->Reply(201, R"({"status":{"allowed":true}})");
  EXPECT_THAT(Ask({.verb = "update",
                   .group = "subresources.kubevirt.io",
                   .resource = "virtualmachines",
                   .ns = "default"}),
              IsOkAndHolds(true));
  EXPECT_EQ(OnlyRequest().target, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews");
  EXPECT_EQ(OnlyRequest().method, http::Method::kPost);
  EXPECT_EQ(OnlyRequest().effect, http::Effect::kRead);
  EXPECT_EQ(Body(), Json::parse(R"({
      "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
      "spec": {"resourceAttributes": {
          "verb": "update", "group": "subresources.kubevirt.io", "resource": "virtualmachines",
          "namespace": "default"}}})"));
}

TEST_F(Access, a_right_in_the_cluster_and_in_the_core_group_names_neither) {
  transport_->Reply(201, R"({"status":{"allowed":false,"reason":"no"}})");
  EXPECT_THAT(Ask({.verb = "get", .group = "", .resource = "namespaces", .ns = ""}),
              IsOkAndHolds(false));
  EXPECT_EQ(Body()["spec"]["resourceAttributes"],
            Json::parse(R"({"verb": "get", "group": "", "resource": "namespaces"})"));
}

// Such a reply must not count as a granted or a denied right.
TEST_F(Access, a_reply_without_a_decision_is_an_error) {
  for (const char* body : {"{}", R"({"status":{}})", R"({"status":{"allowed":"true"}})",
                           R"({"status":{"allowed":null}})", R"({"status":[true]})"}) {
    transport_->Reply(201, body);
    EXPECT_THAT(Ask({.verb = "get", .group = "", .resource = "secrets", .ns = ""}),
                StatusIs(StatusCode::kInternal, HasSubstr("SelfSubjectAccessReview")))
        << body;
  }
}

TEST_F(Access, a_refusal_to_answer_is_passed_on) {
  transport_->Reply(401, "");
  EXPECT_THAT(Ask({.verb = "get", .group = "", .resource = "secrets", .ns = ""}),
              StatusIs(StatusCode::kUnauthenticated));
  transport_->Reply(403, "");
  EXPECT_TRUE(IsForbidden(Fetch().status()));
}

TEST_F(Access, all_rights_of_a_namespace_come_with_one_SelfSubjectRulesReview) {
  transport_->Reply(201, R"({"status":{"incomplete":false,"nonResourceRules":[],
      "resourceRules":[
        {"verbs":["get","list"],"apiGroups":["kubevirt.io"],"resources":["virtualmachines"]},
        {"verbs":["get"],"apiGroups":[""],"resources":["secrets"],"resourceNames":["a"]}]}})");
  const auto rules = Fetch();
  ASSERT_THAT(rules, IsOk());
  EXPECT_EQ(OnlyRequest().target, "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews");
  EXPECT_EQ(OnlyRequest().effect, http::Effect::kRead);
  EXPECT_EQ(Body(), Json::parse(R"({
      "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview",
      "spec": {"namespace": "default"}})"));
  EXPECT_TRUE(rules->Allows("list", "kubevirt.io", "virtualmachines"));
  EXPECT_FALSE(rules->Allows("delete", "kubevirt.io", "virtualmachines"));
  EXPECT_FALSE(rules->Allows("get", "", "secrets")) << "only one of them";
  EXPECT_FALSE(rules->incomplete);
}

TEST_F(Access, rules_that_the_server_could_not_list_in_full_say_so) {
  transport_->Reply(201, R"({"status":{"incomplete":true,"resourceRules":[],
      "evaluationError":"webhook authorizer does not support user rule resolution"}})");
  const auto rules = Fetch();
  ASSERT_THAT(rules, IsOk());
  EXPECT_TRUE(rules->incomplete);
}

TEST_F(Access, no_rules_at_all_allow_nothing) {
  transport_->Reply(201, R"({"status":{"resourceRules":null}})");
  const auto rules = Fetch();
  ASSERT_THAT(rules, IsOk());
  EXPECT_FALSE(rules->Allows("get", "", "secrets"));
  EXPECT_FALSE(rules->Allows("*", "*", "*"));
}

TEST_F(Access, rules_of_the_wrong_type_allow_nothing) {
  transport_->Reply(201, R"({"status":{"resourceRules":[7,null,[],{},
      {"verbs":"*","apiGroups":["*"],"resources":["*"]},
      {"verbs":[1,null],"apiGroups":["*"],"resources":["*"]},
      {"verbs":["*"],"apiGroups":{},"resources":["*"]}]}})");
  const auto rules = Fetch();
  ASSERT_THAT(rules, IsOk());
  EXPECT_FALSE(rules->Allows("get", "", "secrets"));
}

TEST_F(Access, a_review_without_rules_is_an_error) {
  for (const char* body :
       {"{}", R"({"status":{}})", R"({"status":{"resourceRules":{}}})", R"({"status":7})"}) {
    transport_->Reply(201, body);
    EXPECT_THAT(Fetch(), StatusIs(StatusCode::kInternal, HasSubstr("SelfSubjectRulesReview")))
        << body;
  }
}

AccessRules Rules(const AccessRules::Rule& rule) { return {.rules = {rule}}; }

TEST(AccessRules, a_rule_counts_with_verb_group_and_resource_together) {
  const AccessRules rules{
      .rules = {{{"get"}, {"kubevirt.io"}, {"virtualmachines"}}, {{"delete"}, {""}, {"secrets"}}}};
  EXPECT_TRUE(rules.Allows("get", "kubevirt.io", "virtualmachines"));
  EXPECT_TRUE(rules.Allows("delete", "", "secrets"));
  EXPECT_FALSE(rules.Allows("delete", "kubevirt.io", "virtualmachines"));
  EXPECT_FALSE(rules.Allows("get", "", "virtualmachines"));
  EXPECT_FALSE(rules.Allows("get", "other.io", "virtualmachines"));
  EXPECT_FALSE(rules.Allows("delete", "kubevirt.io", "secrets"));
  EXPECT_FALSE(rules.Allows("get", "kubevirt.io", "secrets"));
}

TEST(AccessRules, wildcards_match_everything) {
  const AccessRules admin = Rules({{"*"}, {"*"}, {"*"}});
  EXPECT_TRUE(admin.Allows("patch", "coordination.k8s.io", "leases"));
  EXPECT_TRUE(admin.Allows("update", "kubevirt.io", "virtualmachines"));
}

}  // namespace
}  // namespace nomad_harvester::kube
