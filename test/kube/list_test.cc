// SPDX-License-Identifier: Apache-2.0
// Lists: what is one, and what is not.
#include <string>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/base/time.h"
#include "nomad_harvester/kube/observed.h"

#include "kube/client_fixture.h"
#include "kube/list_names.h"

namespace nomad_harvester::kube {
namespace {

using absl::StatusCode;
using support::IsOk;
using support::StatusIs;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr char kPath[] = "/apis/kubevirt.io/v1/namespaces/default/virtualmachines";

// A list of VMs with these names.
std::string VmList(const std::vector<std::string>& names, const std::string& token = "") {
  Json items = Json::array();
  for (const std::string& name : names) items.push_back({{"metadata", {{"name", name}}}});
  return base::DumpJson({{"kind", "VirtualMachineList"},
                         {"metadata", {{"continue", token}, {"resourceVersion", "100"}}},
                         {"items", items}});
}

class KubeLists : public ClientFixture {
 protected:
  absl::StatusOr<Timestamped<std::vector<Named>>> ListVms(const std::string& selector = "",
                                                          const std::string& ns = "default") {
    return ListNames(client_, context_, kVirtualMachines, ns, {.labels = selector});
  }
  static std::vector<std::string> Names(const Timestamped<std::vector<Named>>& list) {
    std::vector<std::string> names;
    for (const Named& item : list.value) names.push_back(item.name);
    return names;
  }
};

TEST_F(KubeLists, a_page_for_people_is_no_list_and_names_the_key_of_the_address) {
  transport_->Reply(200, "<html><title>Login</title></html>", {{"Content-Type", "text/html"}});
  EXPECT_THAT(ListVms(),
              StatusIs(absl::StatusCode::kInternal,
                       AllOf(HasSubstr("list VirtualMachines in default: the reply is an "
                                       "HTML page; check that harvester_url is"),
                             Not(HasSubstr("Login")))));
}

TEST_F(KubeLists, a_list_is_one_request) {
  transport_->Reply(200, VmList({"a", "b"}), {{"Date", "Sat, 21 Nov 2026 02:03:04 GMT"}});
  const auto list = ListVms();
  ASSERT_THAT(list, IsOk());
  EXPECT_THAT(Names(*list), ElementsAre("a", "b"));
  EXPECT_EQ(list->server_time, *base::ParseRfc3339("2026-11-21T02:03:04Z"));
  EXPECT_EQ(OnlyRequest().target, kPath);
  EXPECT_EQ(OnlyRequest().method, http::Method::kGet);
  EXPECT_EQ(OnlyRequest().effect, http::Effect::kRead);
  EXPECT_EQ(OnlyRequest().idempotency, http::Idempotency::kIdempotent);
  EXPECT_EQ(OnlyRequest().headers.Find("Accept"), "application/json");
  EXPECT_EQ(OnlyRequest().purpose, "list VirtualMachines in default");
}

TEST_F(KubeLists, S3_a_list_of_metadata_asks_for_no_more) {
  transport_->Reply(200, VmList({"a", "b"}));
  const auto list = ListNames(client_, context_, kVirtualMachines, "default", {}, Part::kMetadata);
  ASSERT_THAT(list, IsOk());
  EXPECT_THAT(Names(*list), ElementsAre("a", "b"));
  EXPECT_EQ(OnlyRequest().headers.Find("Accept"),
            "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json");
}

TEST_F(KubeLists, an_empty_list_is_one) {
  for (const char* body : {R"("metadata":{"resourceVersion":"1","continue":""},"items":[])",
                           R"("metadata":{"resourceVersion":"1"},"items":null)",
                           R"("metadata":{"resourceVersion":"1","continue":null},"items":[])"}) {
    transport_->Reply(200, R"({"kind":"VirtualMachineList",)" + std::string(body) + "}");
    const auto list = ListVms();
    ASSERT_THAT(list, IsOk()) << body;
    EXPECT_THAT(list->value, IsEmpty());
    EXPECT_EQ(list->server_time, std::nullopt);
  }
}

TEST_F(KubeLists, selectors_travel_escaped) {
  transport_->Reply(200, VmList({"a"}));
  ASSERT_THAT(ListVms("nomad-harvester-autoscaler/pool=web,!x"), IsOk());
  EXPECT_EQ(OnlyRequest().target,
            kPath + std::string("?labelSelector=nomad-harvester-autoscaler%2Fpool%3Dweb%2C%21x"));
}

TEST_F(KubeLists, a_list_over_all_namespaces_names_none) {
  transport_->Reply(200, VmList({}));
  ASSERT_THAT(ListVms("", ""), IsOk());
  EXPECT_EQ(OnlyRequest().target, "/apis/kubevirt.io/v1/virtualmachines");
  EXPECT_EQ(OnlyRequest().purpose, "list VirtualMachines");
}

// The VMs of the other pages would look deleted.
TEST_F(KubeLists, S1_a_page_does_not_pass_for_the_list) {
  transport_->Reply(200, VmList({"a", "b"}, "t1"));
  EXPECT_THAT(ListVms(), StatusIs(StatusCode::kInternal,
                                  "list VirtualMachines in default: the reply is only a page of "
                                  "the list; check that harvester_url is the address of the API, "
                                  "and that no proxy changes its replies"));
  EXPECT_EQ(OnlyRequest().target, kPath);
}

TEST_F(KubeLists, what_is_not_a_list_is_INTERNAL) {
  for (const char* body :
       {"", "x", "null", "[]", "{}", R"({"kind":"VirtualMachine","metadata":{}})",
        R"({"items":{}})", R"({"items":"a"})", R"({"items":[1]})", R"({"items":[{},null]})",
        R"({"type":"collection","data":[]})"}) {
    transport_->Reply(200, body);
    EXPECT_THAT(ListVms(), StatusIs(StatusCode::kInternal,
                                    HasSubstr("list VirtualMachines in default: the reply ")))
        << body;
  }
}

// None of them has items; as an empty list each would make VMs.
TEST_F(KubeLists, S1_a_reply_of_another_kind_is_not_an_empty_list) {
  const std::string rest = R"("metadata":{"resourceVersion":"7"},"items":null})";
  for (const char* kind : {"Status", "VirtualMachineInstanceList", "List", "virtualmachinelist",
                           "PartialObjectMetadataList"}) {
    transport_->Reply(200, R"({"kind":")" + std::string(kind) + "\"," + rest);
    EXPECT_THAT(ListVms(),
                StatusIs(StatusCode::kInternal,
                         "list VirtualMachines in default: the reply is a \"" + std::string(kind) +
                             "\", not a VirtualMachineList; check that harvester_url is "
                             "the address of the API, and that no proxy changes its "
                             "replies"));
  }
  transport_->Reply(200, "{" + rest);
  EXPECT_THAT(ListVms(), StatusIs(StatusCode::kInternal, HasSubstr("the reply has no kind")));
}

TEST_F(KubeLists, S1_a_list_of_no_version_is_not_a_list) {
  for (const char* metadata : {"null", "{}", R"({"resourceVersion":""})",
                               R"({"resourceVersion":null})", R"({"resourceVersion":7})"}) {
    transport_->Reply(200, R"({"kind":"VirtualMachineList","metadata":)" + std::string(metadata) +
                               R"(,"items":[]})");
    EXPECT_THAT(ListVms(), StatusIs(StatusCode::kInternal, HasSubstr("metadata.resourceVersion")))
        << metadata;
  }
}

TEST_F(KubeLists, S3_a_list_of_metadata_is_one_of_its_own_kind_or_a_whole_one) {
  const std::string rest = R"("metadata":{"resourceVersion":"7"},"items":[]})";
  for (const char* kind : {"PartialObjectMetadataList", "VirtualMachineList", "SecretList"}) {
    transport_->Reply(200, R"({"kind":")" + std::string(kind) + "\"," + rest);
    const auto list = ListNames(client_, context_, kVirtualMachines, "ns", {}, Part::kMetadata);
    EXPECT_EQ(list.ok(), std::string_view(kind) != "SecretList") << list.status();
  }
}

// A list that ends too early would make VMs look deleted.
TEST_F(KubeLists, S1_a_continue_token_that_is_not_text_does_not_end_the_list) {
  for (const char* token : {"7", "true", "{}", "[\"t\"]"}) {
    transport_->Reply(200, R"({"metadata":{"continue":)" + std::string(token) + R"(},"items":[]})");
    EXPECT_THAT(ListVms(), StatusIs(StatusCode::kInternal, HasSubstr("continue"))) << token;
  }
}

TEST_F(KubeLists, a_list_that_may_not_be_read_says_so) {
  transport_->Reply(403, StatusBody(403, "Forbidden", "virtualmachines is forbidden"));
  const auto list = ListVms();
  EXPECT_TRUE(kube::IsForbidden(list.status()));
}

TEST_F(KubeLists, a_namespace_that_would_name_another_path_is_never_sent) {
  EXPECT_THAT(ListVms({}, ".."), StatusIs(StatusCode::kInvalidArgument));
  EXPECT_THAT(transport_->requests(), IsEmpty());
}

}  // namespace
}  // namespace nomad_harvester::kube
