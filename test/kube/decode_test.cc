// SPDX-License-Identifier: Apache-2.0
// Which parts of an object and of a page are kept.
#include "decode.h"

#include <string>
#include <vector>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/status.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kube/replies.h"
#include "support/status_matchers.h"

namespace nomad_harvester::kube {
namespace {

using absl::StatusCode;
using support::IsOk;
using support::StatusIs;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

// A VM as Harvester returns it, with the members that make up most of a list.
constexpr char kWholeVm[] = R"({
    "metadata": {
      "name": "web-1", "namespace": "default", "uid": "u-1", "resourceVersion": "77",
      "creationTimestamp": "2026-11-21T02:03:04Z", "deletionTimestamp": null,
      "finalizers": ["kubevirt.io/virtualMachineControllerFinalize"],
      "labels": {"nomad-harvester-autoscaler/pool": "web"},
      "annotations": {"nomad-harvester-autoscaler/self": "web-1/uuid", "managedFields": "a name"},
      "managedFields": [{"manager": "virt-controller", "fieldsV1": {"f:spec": {"f:template": {}}}}]
    },
    "spec": {
      "runStrategy": "RerunOnFailure",
      "template": {
        "metadata": {"labels": {"a": "b"}, "managedFields": "not ours to drop"},
        "spec": {
          "domain": {"firmware": {"uuid": "uuid"}, "devices": {"disks": [{"name": "disk-0"}]}},
          "volumes": [{"name": "disk-0", "persistentVolumeClaim": {"claimName": "web-1-disk-0"}}],
          "networks": [{"name": "nic-0", "multus": {"networkName": "default/vlan1"}}]
        }
      }
    },
    "status": {"printableStatus": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
  })";

TEST(DecodeObject, drops_managedFields_of_the_object_and_nothing_else) {
  const auto observed = DecodeObject(Response(200, kWholeVm), "get X");
  ASSERT_THAT(observed, IsOk());
  Json wanted = Json::parse(kWholeVm);
  wanted["metadata"].erase("managedFields");
  EXPECT_EQ(observed->object, wanted);
}

Page DecodeList(const std::string& items, const std::vector<std::string>& drop) {
  auto page =
      DecodePage(Response(200, R"({"metadata":{"resourceVersion":"9"},"items":)" + items + "}"),
                 drop, "list X");
  EXPECT_THAT(page, IsOk());
  return page.ok() ? *std::move(page) : Page{};
}

TEST(DecodePage, drops_managedFields_of_every_item) {
  const Page page = DecodeList("[" + std::string(kWholeVm) + "," + kWholeVm + "]", {});
  Json wanted = Json::parse(kWholeVm);
  wanted["metadata"].erase("managedFields");
  EXPECT_THAT(page.items, ElementsAre(wanted, wanted));
  EXPECT_EQ(page.resource_version, "9");
  EXPECT_EQ(page.continue_token, "");
}

TEST(DecodePage, drops_unused_members_and_keeps_the_others) {
  const Page page = DecodeList("[" + std::string(kWholeVm) + "]",
                               {"spec.template.spec.domain.devices", "spec.template.spec.networks",
                                "status.conditions.status"});
  ASSERT_THAT(page.items, SizeIs(1));
  const Json& vm = page.items[0];
  EXPECT_EQ(NameOf(vm), "web-1");
  EXPECT_EQ(ResourceVersionOf(vm), "77");
  const Json& guest = vm["spec"]["template"]["spec"];
  EXPECT_EQ(guest["domain"], Json::parse(R"({"firmware": {"uuid": "uuid"}})"));
  EXPECT_FALSE(guest.contains("networks"));
  EXPECT_EQ(guest["volumes"][0]["persistentVolumeClaim"]["claimName"], "web-1-disk-0");
  EXPECT_EQ(vm["status"]["conditions"][0], Json::parse(R"({"type": "Ready"})"));
  EXPECT_EQ(vm["metadata"]["annotations"]["managedFields"], "a name");
  EXPECT_EQ(vm["spec"]["template"]["metadata"]["managedFields"], "not ours to drop");
}

TEST(DecodePage, a_path_to_drop_begins_at_the_item) {
  const Page page =
      DecodeList(R"([{"items":{"a":1},"metadata":{"continue":"x"}}])", {"metadata.continue", "a"});
  EXPECT_EQ(page.items[0], Json::parse(R"({"items":{"a":1},"metadata":{}})"));
}

// The list's own metadata stays, even if its items drop theirs.
TEST(DecodePage, the_lists_own_metadata_is_kept) {
  const auto page = DecodePage(
      Response(200,
               R"({"metadata":{"resourceVersion":"9","continue":"t"},"items":[{"metadata":1}]})"),
      {"metadata"}, "list X");
  ASSERT_THAT(page, IsOk());
  EXPECT_EQ(page->continue_token, "t");
  EXPECT_EQ(page->resource_version, "9");
  EXPECT_THAT(page->items, ElementsAre(Json::object()));
}

TEST(DecodePage, a_page_of_five_hundred_VMs_is_read_without_their_bulk) {
  std::string items;
  const std::string fields(2'000, 'f');
  for (int i = 0; i < 500; ++i) {
    items += (i == 0 ? "" : ",") + (R"({"metadata":{"name":"vm-)" + std::to_string(i)) +
             R"(","managedFields":[{"fieldsV1":")" + fields + R"("}]},"spec":{"x":")" + fields +
             "\"}}";
  }
  const Page page = DecodeList("[" + items + "]", {"spec"});
  ASSERT_THAT(page.items, SizeIs(500));
  EXPECT_EQ(base::DumpJson(page.items[499]), R"({"metadata":{"name":"vm-499"}})");
}

TEST(DecodePage, members_of_the_wrong_type_are_as_if_they_were_not_there) {
  const auto page =
      DecodePage(Response(200, R"({"metadata":{"resourceVersion":9},"items":[]})"), {}, "list X");
  ASSERT_THAT(page, IsOk());
  EXPECT_EQ(page->resource_version, "");
  EXPECT_THAT(DecodePage(Response(200, R"({"metadata":"x","items":[]})"), {}, "list X"), IsOk());
}

TEST(DecodePage, an_error_names_what_was_asked_and_why) {
  EXPECT_THAT(DecodePage(Response(200, "{\"items\":[{]}"), {}, "list X"),
              StatusIs(StatusCode::kInternal,
                       "list X: the reply cannot be decoded: the body is not JSON: syntax error at "
                       "byte 12"));
  EXPECT_THAT(DecodePage(Response(200, "{\"items\":[7]}"), {}, "list X"),
              StatusIs(StatusCode::kInternal, HasSubstr("an item is not an object")));
  EXPECT_THAT(DecodePage(Response(200, "{\"items\":{}}"), {}, "list X"),
              StatusIs(StatusCode::kInternal, HasSubstr("its items are not an array")));
  EXPECT_THAT(DecodePage(Response(200, "{\"data\":[]}"), {}, "list X"),
              StatusIs(StatusCode::kInternal, HasSubstr("it is not a list")));
  EXPECT_THAT(DecodePage(Response(200, "[]"), {}, "list X"),
              StatusIs(StatusCode::kInternal, HasSubstr("it is not a JSON object")));
}

TEST(Metadata, is_empty_where_it_is_missing_or_of_another_type) {
  for (const char* text : {"{}", "[]", "null", R"({"metadata":7})", R"({"metadata":{}})",
                           R"({"metadata":{"name":1,"uid":[],"resourceVersion":{}}})"}) {
    const Json object = Json::parse(text);
    EXPECT_EQ(NameOf(object), "") << text;
    EXPECT_EQ(ResourceVersionOf(object), "") << text;
  }
}

}  // namespace
}  // namespace nomad_harvester::kube
