// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "harvester/samples.h"
#include "harvester/store_fixture.h"
#include "support/inline_executor.h"
#include "support/status_matchers.h"

namespace nomad_harvester::harvester {
namespace {

using nlohmann::json;
using support::IsOk;
using support::StatusIs;
using testing::AllOf;
using testing::HasSubstr;
using testing::SizeIs;

json ImageObject(const std::string& name, const std::string& display_name) {
  return {{"metadata",
           {{"name", name}, {"labels", {{"harvesterhci.io/imageDisplayName", display_name}}}}},
          {"spec", {{"displayName", display_name}}},
          {"status",
           {{"storageClassName", "lh-" + name},
            {"virtualSize", 3758096384},
            {"progress", 100},
            {"conditions",
             {{{"type", "Initialized"}, {"status", "True"}},
              {{"type", "Imported"}, {"status", "True"}}}}}}};
}

class VmStoreImages : public StoreTest {
 protected:
  support::InlineExecutor executor_;
  static constexpr char kImageNs[] = "images";
  void PutImage(const json& object) { Put(kube::kVirtualMachineImages, kImageNs, object); }
  absl::StatusOr<Image> Resolve(const std::string& name) {
    return store_.ResolveImage(context_, executor_, kImageNs, name);
  }
  // The problem of an image with this status.
  std::string ProblemWith(const json& status) {
    json image = ImageObject("image-a", "a");
    image["status"] = status;
    PutImage(image);
    const auto resolved = Resolve("image-a");
    EXPECT_THAT(resolved, IsOk());
    return resolved.ok() ? resolved->problem : "";
  }
};

TEST_F(VmStoreImages, finds_one_by_its_resource_name_first) {
  PutImage(ImageObject("image-a", "ubuntu"));
  PutImage(ImageObject("image-b", "image-a"));
  const auto image = Resolve("image-a");
  ASSERT_THAT(image, IsOk());
  EXPECT_EQ(image->ns, kImageNs);
  EXPECT_EQ(image->name, "image-a");
  EXPECT_EQ(image->display_name, "ubuntu");
  EXPECT_EQ(image->storage_class, "lh-image-a");
  EXPECT_EQ(image->virtual_size, 3758096384);
  EXPECT_TRUE(image->imported);
  EXPECT_EQ(image->problem, "");
  EXPECT_THAT(script_.requests(), SizeIs(2)) << "both kinds of name are looked for at once";
}

TEST_F(VmStoreImages, finds_one_by_its_display_name_with_a_label_selector) {
  PutImage(ImageObject("image-a", "ubuntu-24.04"));
  PutImage(ImageObject("image-b", "debian-12"));
  const auto image = Resolve("debian-12");
  ASSERT_THAT(image, IsOk());
  EXPECT_EQ(image->name, "image-b");
  ASSERT_THAT(script_.requests(), SizeIs(2));
  EXPECT_EQ(script_.requests()[0].query.at("labelSelector"),
            "harvesterhci.io/imageDisplayName=debian-12");
}

TEST_F(VmStoreImages, finds_a_display_name_that_no_label_carries) {
  json unlabelled = ImageObject("image-a", "debian-12");
  unlabelled["metadata"].erase("labels");
  PutImage(unlabelled);
  PutImage(ImageObject("image-b", "Ubuntu Noble (24.04)/x %"));
  EXPECT_EQ(Resolve("debian-12")->name, "image-a");
  EXPECT_EQ(Resolve("Ubuntu Noble (24.04)/x %")->name, "image-b");
}

TEST_F(VmStoreImages, does_not_trust_a_label_that_contradicts_the_object) {
  json renamed = ImageObject("image-a", "new-name");
  renamed["metadata"]["labels"]["harvesterhci.io/imageDisplayName"] = "old-name";
  PutImage(renamed);
  EXPECT_THAT(Resolve("old-name"), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(Resolve("new-name")->name, "image-a");
}

TEST_F(VmStoreImages, refuses_a_display_name_that_two_images_have) {
  PutImage(ImageObject("image-a", "debian-12"));
  PutImage(ImageObject("image-b", "debian-12"));
  EXPECT_THAT(Resolve("debian-12"),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("2 images have the display name \"debian-12\""),
                             HasSubstr("image-a"), HasSubstr("image-b"))));
}

TEST_F(VmStoreImages, lists_the_existing_images) {
  EXPECT_THAT(Resolve("debian-13"),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("\"debian-13\""), HasSubstr("has no images"))));
  for (int i = 0; i < 20; ++i) {
    PutImage(ImageObject("image-" + std::to_string(i + 10), "name-" + std::to_string(i)));
  }
  EXPECT_THAT(Resolve("debian-13"),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("there is: image-10 (name-0)"), HasSubstr("..."))));
}

TEST_F(VmStoreImages, passes_on_a_missing_right) {
  script_.Next("list", Refusal(403, "Forbidden", "images is forbidden"));
  EXPECT_THAT(Resolve("debian-12"),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("image images/debian-12")));
  script_.Next("get", Refusal(403, "Forbidden", "images is forbidden"));
  EXPECT_THAT(Resolve("debian-12"),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("image images/debian-12")));
}

TEST_F(VmStoreImages, C2_an_image_that_is_not_ready_says_why) {
  const json imported = {{"type", "Imported"}, {"status", "True"}};
  const json importing = {{"type", "Imported"}, {"status", "Unknown"}, {"reason", "Importing"}};
  EXPECT_EQ(ProblemWith({{"progress", 42}, {"conditions", {importing}}}),
            "it is still being imported (42 %)");
  EXPECT_EQ(ProblemWith({{"conditions",
                          {importing,
                           {{"type", "RetryLimitExceeded"},
                            {"status", "False"},
                            {"message", "retry attempted 1/3 failed due to error: 404"}}}}}),
            "it is still being imported (0 %): retry attempted 1/3 failed due to error: 404");
  EXPECT_EQ(ProblemWith({{"conditions",
                          {{{"type", "Imported"}, {"status", "False"}, {"message", "no space"}}}}}),
            "its import failed: no space");
  EXPECT_EQ(
      ProblemWith({{"conditions",
                    {{{"type", "Initialized"}, {"status", "False"}, {"message", "bad url"}}}}}),
      "its initialisation failed: bad url");
  EXPECT_EQ(ProblemWith({{"conditions",
                          {importing, {{"type", "RetryLimitExceeded"}, {"status", "True"}}}}}),
            "its import was given up");
  EXPECT_EQ(
      ProblemWith({{"storageClassName", "x"},
                   {"conditions",
                    {imported,
                     {{"type", "BackingImageMissing"}, {"status", "True"}, {"message", "gone"}}}}}),
      "its backing image is missing: gone");
  EXPECT_EQ(ProblemWith({{"conditions", {imported}}}),
            "Harvester has not given it a storage class yet");
  EXPECT_EQ(ProblemWith(json::object()), "it is still being imported (0 %)");
}

TEST_F(VmStoreImages, an_image_that_is_being_deleted_is_not_usable) {
  PutTerminating(kube::kVirtualMachineImages, kImageNs, ImageObject("image-a", "a"));
  EXPECT_EQ(Resolve("image-a")->problem, "it is being deleted");
}

}  // namespace
}  // namespace nomad_harvester::harvester
