// SPDX-License-Identifier: Apache-2.0
// The simulated Kubernetes API through the plugin's client.
#include <algorithm>
#include <set>

#include "nomad_harvester/kube/access.h"
#include "nomad_harvester/kube/lease.h"

#include "simulator_fixture.h"

namespace nomad_harvester::simulator {
namespace {

using absl::StatusCode;

json Lease(const std::string& renew_time) {
  return {{"metadata", {{"name", "l"}}},
          {"spec", {{"holderIdentity", "me"}, {"renewTime", renew_time}}}};
}

class KubeApiTest : public SimulatorTest {
 protected:
  http::HttpResponse Send(http::Method method, const std::string& target, const std::string& body,
                          const std::string& type = "application/json") {
    return Ask(System::kHarvester, method, target, body, type);
  }
  void MakeSecrets(int count) {
    for (int i = 0; i < count; ++i) {
      json secret = SecretFor("vm-" + std::to_string(i));
      secret["metadata"]["labels"]["parity"] = i % 2 == 0 ? "even" : "odd";
      ASSERT_THAT(kube().Create(context_, kube::kSecrets, "nomad", secret), IsOk());
    }
  }
  std::set<std::string> Names(const std::string& labels) {
    const auto list =
        kube::ListNames(kube(), context_, kube::kSecrets, "nomad", {.labels = labels});
    EXPECT_THAT(list, IsOk());
    std::set<std::string> names;
    for (const kube::Named& item : list->value) names.insert(item.name);
    return names;
  }
};

TEST_F(KubeApiTest, A_created_object_gets_what_the_server_gives) {
  const json vm = MakeVm("vm-1");
  EXPECT_THAT(UidOf(vm), testing::MatchesRegex("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab]"
                                               "[0-9a-f]{3}-[0-9a-f]{12}"));
  EXPECT_FALSE(kube::ResourceVersionOf(vm).empty());
  EXPECT_EQ(vm["metadata"]["generation"], 1);
  EXPECT_EQ(vm["metadata"]["creationTimestamp"], "2026-01-01T00:00:00Z");
  EXPECT_FALSE(vm.contains("status"));
}

TEST_F(KubeApiTest, A_group_that_does_not_exist_is_not_found) {
  for (const char* target :
       {"/apis/none.io/v1", "/apis/kubevirt.io/v2", "/api/v2", "/openapi/v3/apis/none.io/v1"}) {
    EXPECT_EQ(Send(http::Method::kGet, target, "").status, 404) << target;
  }
  EXPECT_EQ(Send(http::Method::kPost, "/apis/kubevirt.io/v1", "{}").status, 404);
}

TEST_F(KubeApiTest, Every_reply_has_the_servers_time) {
  Wait(seconds(61));
  const auto list = ListNames(kube(), context_, kube::kSecrets, "nomad");
  EXPECT_EQ(list->server_time, clock_.WallNow());
}

TEST_F(KubeApiTest, Unknown_fields_are_refused_strictly_and_pruned_otherwise) {
  json vm = VmNamed("vm-1");
  vm["spec"]["template"]["spec"]["hostName"] = "x";
  EXPECT_THAT(kube().Create(context_, kube::kVirtualMachines, "nomad", vm),
              StatusIs(StatusCode::kInvalidArgument,
                       HasSubstr("unknown field \"spec.template.spec.hostName\"")));
  const http::HttpResponse made =
      Send(http::Method::kPost, "/apis/kubevirt.io/v1/namespaces/nomad/virtualmachines", vm.dump());
  ASSERT_EQ(made.status, 201);
  EXPECT_FALSE(json::parse(made.body)["spec"]["template"]["spec"].contains("hostName"));
}

TEST_F(KubeApiTest, Objects_need_a_namespace_that_exists_and_a_run_strategy) {
  json elsewhere = VmNamed("vm-1");
  elsewhere["metadata"]["namespace"] = "nowhere";
  EXPECT_THAT(kube().Create(context_, kube::kVirtualMachines, "nowhere", elsewhere),
              StatusIs(StatusCode::kNotFound, HasSubstr("namespaces \"nowhere\"")));
  json idle = VmNamed("vm-1");
  idle["spec"].erase("runStrategy");
  EXPECT_THAT(kube().Create(context_, kube::kVirtualMachines, "nomad", idle),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("RunStrategy must be specified")));
  json unknown = VmNamed("vm-1");
  unknown["spec"]["runStrategy"] = "WaitAsReceiver";
  EXPECT_THAT(kube().Create(context_, kube::kVirtualMachines, "nomad", unknown),
              StatusIs(StatusCode::kInvalidArgument));
}

TEST_F(KubeApiTest, A_quota_refuses_with_500_as_harvester_does) {
  cluster().SetQuotaExceeded("storage insufficient resources due to resource quota");
  const auto vm = kube().Create(context_, kube::kVirtualMachines, "nomad", VmNamed("vm-1"));
  EXPECT_THAT(vm, StatusIs(StatusCode::kResourceExhausted));
  EXPECT_EQ(kube::GetKubeError(vm.status())->http_status, 500);
  cluster().SetQuotaExceeded(std::nullopt);
  EXPECT_THAT(kube().Create(context_, kube::kVirtualMachines, "nomad", VmNamed("vm-1")), IsOk());
}

TEST_F(KubeApiTest, An_unknown_network_fails_the_creation) {
  options_.networks = {};
  const auto vm = kube().Create(context_, kube::kVirtualMachines, "nomad", VmNamed("vm-1"));
  EXPECT_THAT(
      vm, StatusIs(StatusCode::kFailedPrecondition, HasSubstr("network-attachment-definitions")));
}

TEST_F(KubeApiTest, A_patch_cannot_touch_uid_status_or_generation) {
  MakeVm("vm-1");
  Wait(seconds(1));
  json patch = {{"metadata", {{"uid", "00000000-0000-0000-0000-000000000000"}}}};
  EXPECT_THAT(kube().MergePatch(context_, kube::kVirtualMachines, "nomad", "vm-1", patch),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("field is immutable")));
  patch = {{"metadata", {{"generation", 77}}}, {"status", {{"printableStatus", "Running"}}}};
  ASSERT_THAT(kube().MergePatch(context_, kube::kVirtualMachines, "nomad", "vm-1", patch), IsOk());
  EXPECT_EQ(StatusOf("vm-1"), "Starting");
  EXPECT_EQ(cluster().Vm("vm-1")["metadata"]["generation"], 1);
  patch = {{"spec", {{"template", {{"spec", {{"hostname", "h"}}}}}}}};
  ASSERT_THAT(kube().MergePatch(context_, kube::kVirtualMachines, "nomad", "vm-1", patch), IsOk());
  EXPECT_EQ(cluster().Vm("vm-1")["metadata"]["generation"], 2);
}

TEST_F(KubeApiTest, A_claim_of_an_existing_vm_is_not_deleted) {
  const json vm = MakeVm("vm-1");
  Wait(seconds(6));
  const json claim = cluster().Claims().at(0);
  kube::DeleteOptions options;
  options.uid = UidOf(claim);
  const auto refused =
      kube().Delete(context_, kube::kPersistentVolumeClaims, "nomad", kube::NameOf(claim), options);
  EXPECT_THAT(refused, StatusIs(StatusCode::kFailedPrecondition, HasSubstr("attached to VM")));
  ASSERT_THAT(DeleteVm(vm), IsOk());
  ASSERT_THAT(
      kube().Delete(context_, kube::kPersistentVolumeClaims, "nomad", kube::NameOf(claim), options),
      IsOk());
  Wait(seconds(1));
  EXPECT_THAT(cluster().Claims(), SizeIs(1));  // the VM's pod still mounts it
  Wait(seconds(3));
  EXPECT_THAT(cluster().Claims(), IsEmpty());
}

TEST_F(KubeApiTest, An_unused_claim_is_deleted_immediately) {
  MakeVm("vm-1");
  Wait(seconds(1));
  cluster().PutObject({{"apiVersion", "v1"},
                       {"kind", "PersistentVolumeClaim"},
                       {"metadata",
                        {{"name", "lonely"},
                         {"namespace", "nomad"},
                         {"finalizers", json::array({"kubernetes.io/pvc-protection"})}}}});
  const auto claim = kube().Get(context_, kube::kPersistentVolumeClaims, "nomad", "lonely");
  kube::DeleteOptions options;
  options.uid = UidOf(claim->object);
  ASSERT_THAT(kube().Delete(context_, kube::kPersistentVolumeClaims, "nomad", "lonely", options),
              IsOk());
  Wait(seconds(1));
  EXPECT_THAT(cluster().Claims(), SizeIs(1));
}

TEST_F(KubeApiTest, Selectors_choose_by_labels) {
  MakeSecrets(5);
  EXPECT_THAT(Names("parity=even"), SizeIs(3));
  EXPECT_THAT(Names("parity==odd,pool=p"), SizeIs(2));
  EXPECT_THAT(Names("parity!=odd"), SizeIs(3));
  EXPECT_THAT(Names("none!=odd"), SizeIs(5));
  EXPECT_THAT(Names("pool=q"), IsEmpty());
  EXPECT_THAT(kube::ListNames(kube(), context_, kube::kSecrets, "nomad", {.labels = "=="}),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("found '=='")));
  EXPECT_THAT(kube::ListNames(kube(), context_, kube::kSecrets, "nomad", {.labels = "parity"}),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("not by 'parity'")));
}

TEST_F(KubeApiTest, Events_are_chosen_by_fields_and_other_resources_by_their_names) {
  for (const auto& [name, kind, type] :
       {std::tuple("e1", "PersistentVolumeClaim", "Warning"), std::tuple("e2", "Pod", "Warning"),
        std::tuple("e3", "PersistentVolumeClaim", "Normal")}) {
    ASSERT_TRUE(cluster().PutObject({{"apiVersion", "events.k8s.io/v1"},
                                     {"kind", "Event"},
                                     {"metadata", {{"name", name}, {"namespace", "nomad"}}},
                                     {"regarding", {{"kind", kind}, {"name", "x"}}},
                                     {"type", type}}));
  }
  const auto list = [&](const kube::ResourceType& type, const std::string& fields) {
    return kube::ListNames(kube(), context_, type, "nomad", {.fields = fields});
  };
  const auto claims = list(kube::kEvents, "type=Warning,regarding.kind=PersistentVolumeClaim");
  ASSERT_THAT(claims, IsOk());
  ASSERT_THAT(claims->value, SizeIs(1));
  EXPECT_EQ(claims->value[0].name, "e1");
  const auto others = list(kube::kEvents, "regarding.kind!=PersistentVolumeClaim");
  ASSERT_THAT(others, IsOk());
  EXPECT_EQ(others->value.at(0).name, "e2");
  EXPECT_THAT(list(kube::kEvents, "note=x"),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("field label not supported: note")));
  EXPECT_THAT(list(kube::kSecrets, "type=Opaque"), StatusIs(StatusCode::kInvalidArgument));
  EXPECT_THAT(list(kube::kSecrets, "metadata.name=nothing"), IsOk());
}

TEST_F(KubeApiTest, Pages_show_the_state_of_the_first_one) {
  MakeSecrets(3);
  const std::string target = "/api/v1/namespaces/nomad/secrets?limit=1";
  const json first = json::parse(Send(http::Method::kGet, target, "").body);
  EXPECT_EQ(first["metadata"]["remainingItemCount"], 2);
  EXPECT_FALSE(first["items"][0].contains("kind"));
  MakeVm("vm-5");
  const std::string token = first["metadata"]["continue"];
  const json second = json::parse(
      Send(http::Method::kGet, target + "&continue=" + base::UrlEscape(token), "").body);
  EXPECT_EQ(second["items"][0]["metadata"]["name"], "vm-1-cloudinit");
  EXPECT_EQ(second["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
  EXPECT_EQ(second["metadata"]["remainingItemCount"], 1);
}

TEST_F(KubeApiTest, Pages_expire_and_their_tokens_are_checked) {
  MakeSecrets(3);
  const std::string target = "/api/v1/namespaces/nomad/secrets?limit=1";
  const json first = json::parse(Send(http::Method::kGet, target, "").body);
  const std::string next =
      target + "&continue=" + base::UrlEscape(first["metadata"]["continue"].get<std::string>());
  Wait(minutes(6));
  const auto expired = Send(http::Method::kGet, next, "");
  EXPECT_EQ(expired.status, 410);
  const json body = json::parse(expired.body);
  EXPECT_EQ(body["reason"], "Expired");
  // The continue token in the 410 continues with the present objects.
  const auto rest = Send(
      http::Method::kGet,
      target + "&continue=" + base::UrlEscape(body["metadata"]["continue"].get<std::string>()), "");
  EXPECT_EQ(rest.status, 200);
  EXPECT_EQ(json::parse(rest.body)["items"][0]["metadata"]["name"], "vm-1-cloudinit");
  EXPECT_EQ(Send(http::Method::kGet, target + "&continue=nonsense", "").status, 400);
}

TEST_F(KubeApiTest, A_leases_times_have_six_fractional_digits) {
  EXPECT_THAT(kube().Create(context_, kube::kLeases, "nomad", Lease("2026-01-02T03:04:05.678Z")),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("cannot parse \".678Z\"")));
  EXPECT_THAT(kube().Create(context_, kube::kLeases, "nomad", Lease("2026-01-02T03:04:05Z")),
              StatusIs(StatusCode::kInvalidArgument));
  EXPECT_THAT(kube().Create(context_, kube::kLeases, "nomad", Lease("2026-01-02T03:04:05.678901Z")),
              IsOk());
  kube::LeaseChange change;
  change.holder = "";
  const auto released =
      kube().MergePatch(context_, kube::kLeases, "nomad", "l", kube::LeasePatch(change));
  ASSERT_THAT(released, IsOk());
  EXPECT_EQ(kube::ParseLease(*released).holder, "");
  EXPECT_THAT(kube().MergePatch(context_, kube::kLeases, "nomad", "l",
                                {{"spec", {{"leaseDurationSeconds", 0}}}}),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("must be greater than 0")));
}

TEST_F(KubeApiTest, A_forbidden_request_is_refused_and_denied_by_both_reviews) {
  cluster().Forbid("delete", "secrets");
  kube::DeleteOptions options;
  options.uid = "any";
  const auto refused = kube().Delete(context_, kube::kSecrets, "nomad", "s", options);
  EXPECT_TRUE(kube::IsForbidden(refused)) << refused;
  EXPECT_FALSE(*kube::ReviewAccess(context_, kube(), {"delete", "", "secrets", "nomad"}));
  EXPECT_TRUE(*kube::ReviewAccess(context_, kube(), {"create", "", "secrets", "nomad"}));
  const auto rules = kube::FetchAccessRules(context_, kube(), "nomad");
  ASSERT_THAT(rules, IsOk());
  EXPECT_FALSE(rules->incomplete);
  EXPECT_FALSE(rules->Allows("delete", "", "secrets"));
  EXPECT_TRUE(rules->Allows("create", "", "secrets"));
  EXPECT_TRUE(rules->Allows("delete", "kubevirt.io", "virtualmachines"));
  cluster().AllowAll();
  EXPECT_TRUE(kube::FetchAccessRules(context_, kube(), "nomad")->Allows("delete", "", "secrets"));
  EXPECT_EQ(cluster().EffectCount(), 1);
}

TEST_F(KubeApiTest, A_token_is_required_if_one_is_set) {
  options_.kube_token = "right";
  EXPECT_THAT(kube::ListNames(kube(), context_, kube::kSecrets, "nomad"),
              StatusIs(StatusCode::kUnauthenticated));
}

TEST_F(KubeApiTest, An_image_is_found_by_display_name_and_can_be_unready) {
  const auto found = kube::ListNames(kube(), context_, kube::kVirtualMachineImages, "default",
                                     {.labels = "harvesterhci.io/imageDisplayName=ubuntu-24.04"});
  ASSERT_THAT(found->value, SizeIs(1));
  EXPECT_EQ(found->value[0].name, "image-rx7kp");
  const auto ready = kube().Get(context_, kube::kVirtualMachineImages, "default", "image-rx7kp");
  EXPECT_EQ(ready->object["status"]["storageClassName"], "lh-2f0c8d6e");
  cluster().SetImageReady("default/ubuntu-24.04", false);
  const auto image = kube().Get(context_, kube::kVirtualMachineImages, "default", "image-rx7kp");
  for (const json& condition : image->object["status"]["conditions"]) {
    if (condition["type"] == "Imported") {
      EXPECT_EQ(condition["status"], "Unknown");
    }
  }
}

TEST_F(KubeApiTest, Unknown_paths_are_404_in_plain_text) {
  for (const char* target :
       {"/", "/api/v1/namespaces/nomad/nosuchthings", "/apis/kubevirt.io/v1/virtualmachines/vm-1",
        "/api/v1/namespaces/nomad/secrets/a/b/c"}) {
    const auto reply = Send(http::Method::kGet, target, "");
    EXPECT_EQ(reply.status, 404) << target;
    EXPECT_THAT(reply.body, HasSubstr("404 page not found")) << target;
  }
  EXPECT_EQ(Send(http::Method::kPost, "/api/v1/secrets", "{}").status, 405);
  EXPECT_EQ(Send(http::Method::kGet, "/api/v1/secrets", "").status, 200);
}

TEST_F(KubeApiTest, Bodies_that_cannot_be_read_are_400) {
  const std::string target = "/api/v1/namespaces/nomad/secrets";
  EXPECT_EQ(Send(http::Method::kPost, target, "nonsense").status, 400);
  EXPECT_EQ(Send(http::Method::kPost, target, "[]").status, 400);
  EXPECT_EQ(Send(http::Method::kPost, target, R"({"kind":"Pod"})").status, 400);
  EXPECT_EQ(Send(http::Method::kPost, target, R"({"metadata":{"namespace":"default"}})").status,
            400);
  EXPECT_EQ(Send(http::Method::kPost, target, R"({"metadata":{"name":"Not-A-Name"}})").status, 422);
  EXPECT_EQ(Send(http::Method::kPost, target, R"({"metadata":{"name":7}})").status, 422);
}

}  // namespace
}  // namespace nomad_harvester::simulator
