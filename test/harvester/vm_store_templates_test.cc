// SPDX-License-Identifier: Apache-2.0
// Templates and their versions.
#include <optional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "harvester/store_fixture.h"
#include "support/status_matchers.h"

namespace nomad_harvester::harvester {
namespace {

using nlohmann::json;
using support::IsOk;
using support::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class VmStoreTemplates : public StoreTest {
 protected:
  void PutTemplate(const std::string& name, const json& spec = json::object()) {
    Put(kube::kVirtualMachineTemplates, "default",
        {{"metadata", {{"name", name}}}, {"spec", spec}});
  }
  void PutVersion(const std::string& name, const std::string& of = "worker") {
    json version = SampleTemplateVersion();
    version["metadata"]["name"] = name;
    version["spec"]["templateId"] = "default/" + of;
    Put(kube::kVirtualMachineTemplateVersions, "default", version);
  }
  absl::StatusOr<VmTemplate> Resolve(std::optional<std::int64_t> version = {},
                                     const std::string& name = "worker") {
    return store_.ResolveTemplate(context_, "default", name, version);
  }
  void PutTools() {
    Put(kube::kVirtualMachineImages, "default",
        {{"metadata", {{"name", "tools"}}},
         {"spec", {{"displayName", "tools.iso"}}},
         {"status",
          {{"storageClassName", "lh-tools"},
           {"virtualSize", 1024},
           {"conditions", {{{"type", "Imported"}, {"status", "True"}}}}}}});
  }
};

TEST_F(VmStoreTemplates, is_taken_in_its_default_version_or_in_the_one_that_is_named) {
  PutTools();
  PutTemplate("worker");
  PutTemplate("other");
  PutVersion("worker-a");
  PutVersion("other-a", "other");
  PutVersion("worker-b");
  const auto by_default = Resolve();
  ASSERT_THAT(by_default, IsOk());
  EXPECT_THAT(by_default->id, StartsWith("default/worker-a ("));
  const auto second = Resolve(2);
  ASSERT_THAT(second, IsOk());
  EXPECT_THAT(second->id, StartsWith("default/worker-b ("));
  EXPECT_NE(second->id, by_default->id);
}

TEST_F(VmStoreTemplates, C2_what_is_missing_is_named_with_what_there_is) {
  EXPECT_THAT(Resolve(), StatusIs(absl::StatusCode::kNotFound,
                                  HasSubstr("template default/worker does not exist; the namespace "
                                            "has no templates")));
  PutTemplate("builder");
  PutTemplate("runner");
  EXPECT_THAT(Resolve(), StatusIs(absl::StatusCode::kNotFound,
                                  HasSubstr("the namespace has: builder, runner")));
  PutTemplate("worker");
  EXPECT_THAT(Resolve(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                  HasSubstr("has no default version; it has no versions yet")));
  PutTools();
  PutVersion("worker-a");
  PutVersion("worker-b");
  EXPECT_THAT(Resolve(3), StatusIs(absl::StatusCode::kNotFound,
                                   HasSubstr("there is no version 3; it has: 1, 2")));
  cluster_.Forbid("list", "virtualmachinetemplates");
  EXPECT_THAT(Resolve({}, "nobody"),
              StatusIs(absl::StatusCode::kNotFound,
                       ::testing::EndsWith("template default/nobody does not exist")));
}

TEST_F(VmStoreTemplates, C2_a_version_is_used_once_its_images_are_there) {
  PutTemplate("worker");
  PutVersion("worker-a");
  EXPECT_THAT(Resolve(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                  AllOf(HasSubstr("worker-a cannot be used: it is not ready"),
                                        HasSubstr("images"))));
  PutTools();
  cluster_.SetImageReady("default/tools", true);
  EXPECT_THAT(Resolve(), IsOk());
}

TEST_F(VmStoreTemplates, a_release_that_says_nothing_of_readiness_leaves_it_to_the_images) {
  PutTemplate("worker", {{"defaultVersionId", "default/old"}});
  json version = SampleTemplateVersion();
  version["metadata"]["name"] = "old";
  version["spec"]["templateId"] = "default/gone";  // so that no controller writes its status
  version["status"] = {{"version", 1}};
  Put(kube::kVirtualMachineTemplateVersions, "default", version);
  EXPECT_THAT(Resolve(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                  HasSubstr("Harvester has not given it a number yet")));
  version["status"]["conditions"] = {{{"type", "assigned"}, {"status", "True"}}};
  Put(kube::kVirtualMachineTemplateVersions, "default", version);
  EXPECT_THAT(Resolve(), IsOk());
}

TEST_F(VmStoreTemplates, C2_one_that_is_being_deleted_is_refused) {
  PutTools();
  PutTemplate("worker", {{"defaultVersionId", "default/worker-a"}});
  json version = SampleTemplateVersion();
  version["metadata"]["name"] = "worker-a";
  PutTerminating(kube::kVirtualMachineTemplateVersions, "default", version);
  EXPECT_THAT(Resolve(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("it is being deleted")));
}

TEST_F(VmStoreTemplates, an_error_names_the_template_and_keeps_its_code) {
  PutTemplate("worker", {{"defaultVersionId", "default/gone"}});
  EXPECT_THAT(Resolve(), StatusIs(absl::StatusCode::kNotFound,
                                  HasSubstr("template default/worker, version gone")));
  cluster_.Forbid("get", "virtualmachinetemplates");
  EXPECT_THAT(Resolve(),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("template default/worker")));
}

TEST_F(VmStoreTemplates, C2_what_a_pool_cannot_have_names_the_version) {
  PutTemplate("worker", {{"defaultVersionId", "default/worker-a"}});
  PutTools();
  json version = SampleTemplateVersion();
  version["metadata"]["name"] = "worker-a";
  version["spec"]["vm"]["spec"]["dataVolumeTemplates"] = {{{"metadata", {{"name", "dv"}}}}};
  Put(kube::kVirtualMachineTemplateVersions, "default", version);
  EXPECT_THAT(Resolve(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("version worker-a cannot be used for a pool: it has dataVolume")));
}

TEST_F(VmStoreTemplates, C2_a_number_is_one_of_its_own_versions_and_not_of_another_template) {
  PutTools();
  PutTemplate("other");
  PutTemplate("worker");
  PutVersion("other-a", "other");
  PutVersion("other-b", "other");
  PutVersion("worker-a");
  EXPECT_THAT(Resolve(2), StatusIs(absl::StatusCode::kNotFound,
                                   ::testing::EndsWith("there is no version 2; it has: 1")));
}

TEST_F(VmStoreTemplates, C2_a_default_version_of_another_namespace_is_none) {
  PutTools();
  PutTemplate("worker", {{"defaultVersionId", "elsewhere/worker-a"}});
  PutVersion("worker-a");
  EXPECT_THAT(Resolve(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                  HasSubstr("has no default version; it has: 1")));
}

TEST_F(VmStoreTemplates, a_network_without_a_namespace_is_one_of_the_pools_and_not_the_templates) {
  PutTools();
  PutTemplate("worker", {{"defaultVersionId", "default/worker-a"}});
  json version = SampleTemplateVersion();
  version["metadata"]["name"] = "worker-a";
  version["spec"]["vm"]["spec"]["template"]["spec"]["networks"][1]["multus"]["networkName"] = "v7";
  Put(kube::kVirtualMachineTemplateVersions, "default", version);
  const auto read = Resolve();
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(read->networks[1].ns + "/" + read->networks[1].name, std::string(kNs) + "/v7");
}

}  // namespace
}  // namespace nomad_harvester::harvester
