// SPDX-License-Identifier: Apache-2.0
// Templates of VMs: what Harvester's webhooks deny, and what its controllers write.
#include <functional>
#include <string>
#include <vector>

#include "simulator_fixture.h"

namespace nomad_harvester::simulator {
namespace {

using absl::StatusCode;

class TemplatesTest : public SimulatorTest {
 protected:
  void MakeTemplate() {
    ASSERT_THAT(kube().Create(context_, kube::kVirtualMachineTemplates, "default",
                              {{"metadata", {{"name", "worker"}}}}),
                IsOk());
  }
  static json VersionNamed(const std::string& name,
                           const std::string& image = "default/image-rx7kp") {
    const json claims = json::array(
        {{{"metadata", {{"name", "c"}, {"annotations", {{"harvesterhci.io/imageId", image}}}}}}});
    return {{"metadata", {{"name", name}}},
            {"spec",
             {{"templateId", "default/worker"},
              {"vm",
               {{"metadata",
                 {{"annotations", {{"harvesterhci.io/volumeClaimTemplates", claims.dump()}}}}},
                {"spec",
                 {{"template",
                   {{"spec",
                     {{"domain",
                       {{"resources", {{"limits", {{"cpu", "1"}, {"memory", "1Gi"}}}}}}}}}}}}}}}}}};
  }
  absl::StatusOr<kube::Observed> MakeVersion(const json& version) {
    return kube().Create(context_, kube::kVirtualMachineTemplateVersions, "default", version);
  }
  json Version(const std::string& name) {
    const auto found = kube().Get(context_, kube::kVirtualMachineTemplateVersions, "default", name);
    EXPECT_THAT(found, IsOk());
    return found.ok() ? found->object : json();
  }
  json Template() {
    const auto found = kube().Get(context_, kube::kVirtualMachineTemplates, "default", "worker");
    EXPECT_THAT(found, IsOk());
    return found.ok() ? found->object : json();
  }
};

TEST_F(TemplatesTest, Versions_are_numbered_and_the_first_is_the_default) {
  MakeTemplate();
  ASSERT_THAT(MakeVersion(VersionNamed("a")), IsOk());
  ASSERT_THAT(MakeVersion(VersionNamed("b")), IsOk());
  EXPECT_EQ(Version("a")["status"]["version"], 1);
  EXPECT_EQ(Version("b")["status"]["version"], 2);
  EXPECT_EQ(Version("b")["metadata"]["labels"]["template.harvesterhci.io/templateID"], "worker");
  EXPECT_EQ(Template()["spec"]["defaultVersionId"], "default/a");
  EXPECT_EQ(Template()["status"]["defaultVersion"], 1);
  EXPECT_EQ(Template()["status"]["latestVersion"], 2);
}

TEST_F(TemplatesTest, A_version_is_ready_once_its_images_are_and_remains_so) {
  const auto ready = [this] {
    const json version = Version("a");
    for (const json& condition : version["status"]["conditions"]) {
      if (condition["type"] == "ready") return condition["status"].get<std::string>();
    }
    return std::string("none");
  };
  MakeTemplate();
  cluster().SetImageReady("default/image-rx7kp", false);
  ASSERT_THAT(MakeVersion(VersionNamed("a")), IsOk());
  EXPECT_EQ(ready(), "False");
  cluster().SetImageReady("default/image-rx7kp", true);
  EXPECT_EQ(ready(), "True");
  cluster().SetImageReady("default/image-rx7kp", false);
  EXPECT_EQ(ready(), "True");
}

TEST_F(TemplatesTest, A_version_without_its_template_or_its_limits_is_denied) {
  MakeTemplate();
  const auto limits = [](json& version) -> json& {
    return version["spec"]["vm"]["spec"]["template"]["spec"]["domain"]["resources"]["limits"];
  };
  struct Case {
    std::string message;
    std::function<void(json&)> spoil;
  };
  for (const Case& c : std::vector<Case>{
           {"TemplateId is empty", [](json& v) { v["spec"].erase("templateId"); }},
           {"should reside in the same namespace",
            [](json& v) { v["spec"]["templateId"] = "nomad/worker"; }},
           {"\"gone\" not found", [](json& v) { v["spec"]["templateId"] = "default/gone"; }},
           {"Invalid JSON data in annotation",
            [](json& v) {
              v["spec"]["vm"]["metadata"]["annotations"]["harvesterhci.io/volumeClaimTemplates"] =
                  "{";
            }},
           {"CPU and Memory limits are required", [&](json& v) { limits(v).clear(); }},
           {"Memory limit is an required field", [&](json& v) { limits(v).erase("memory"); }},
           {"CPU limit is an required field", [&](json& v) { limits(v).erase("cpu"); }}}) {
    json version = VersionNamed("a");
    c.spoil(version);
    const auto made = MakeVersion(version);
    EXPECT_THAT(made.status().ToString(), HasSubstr(c.message));
    const auto error = kube::GetKubeError(made.status());
    ASSERT_TRUE(error.has_value()) << c.message;
    EXPECT_EQ(error->http_status, 422) << c.message;
  }
  EXPECT_THAT(MakeVersion(VersionNamed("a")), IsOk());
}

TEST_F(TemplatesTest, A_version_never_changes_and_the_default_one_stays) {
  MakeTemplate();
  ASSERT_THAT(MakeVersion(VersionNamed("a")), IsOk());
  ASSERT_THAT(MakeVersion(VersionNamed("b")), IsOk());
  const auto changed = kube().MergePatch(context_, kube::kVirtualMachineTemplateVersions, "default",
                                         "a", {{"spec", {{"description", "x"}}}});
  EXPECT_THAT(changed.status().ToString(), HasSubstr("Update templateVersion is not supported"));
  const auto remove = [this](const std::string& name) {
    return kube().Delete(context_, kube::kVirtualMachineTemplateVersions, "default", name,
                         {.uid = support::UidOf(Version(name))});
  };
  EXPECT_THAT(remove("a").ToString(), HasSubstr("Cannot delete the default templateVersion"));
  EXPECT_THAT(remove("b"), IsOk());
}

}  // namespace
}  // namespace nomad_harvester::simulator
