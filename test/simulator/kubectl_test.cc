// SPDX-License-Identifier: Apache-2.0
// The requests of kubectl 1.20 and 1.32, as they were observed.
#include <set>

#include "nomad_harvester/base/encoding.h"

#include "simulator_fixture.h"

namespace nomad_harvester::simulator {
namespace {

using http::Method;

constexpr char kStrategic[] = "application/strategic-merge-patch+json";
constexpr char kRbac[] = "rbac.authorization.k8s.io/v1";

class KubectlTest : public SimulatorTest {
 protected:
  http::HttpResponse Send(Method method, const std::string& target, const json& body = nullptr) {
    return Ask(System::kHarvester, method, target, body.is_null() ? "" : body.dump(),
               method == Method::kPatch ? kStrategic : "application/json");
  }
  json Read(const std::string& target) {
    const http::HttpResponse reply = Send(Method::kGet, target);
    EXPECT_EQ(reply.status, 200) << target;
    return json::parse(reply.body);
  }
  std::set<std::string> EventsOf(const std::string& selector) {
    std::set<std::string> names;
    const json list = Read("/api/v1/namespaces/nomad/events?fieldSelector=" + selector);
    for (const json& event : list["items"]) names.insert(kube::NameOf(event));
    return names;
  }
};

// The requests that "kubectl get vm" sends before the list, in this order.
TEST_F(KubectlTest, Get_finds_the_resources_by_their_short_names) {
  EXPECT_EQ(Read("/api?timeout=32s")["versions"], json::array({"v1"}));
  const json groups = Read("/apis?timeout=32s")["groups"];
  std::set<std::string> versions;
  for (const json& group : groups) versions.insert(group["preferredVersion"]["groupVersion"]);
  EXPECT_TRUE(versions.contains("kubevirt.io/v1") && versions.contains("harvesterhci.io/v1beta1"))
      << groups;
  for (const std::string& version : versions) {
    EXPECT_EQ(Read("/apis/" + version + "?timeout=32s")["groupVersion"], version);
  }
  std::set<std::string> short_names;
  const json kubevirt = Read("/apis/kubevirt.io/v1");
  for (const json& resource : kubevirt["resources"]) {
    short_names.insert(resource["shortNames"][0]);
    EXPECT_EQ(resource["namespaced"], true);
  }
  EXPECT_EQ(short_names, (std::set<std::string>{"vm", "vmi"}));
  const json core = Read("/api/v1");
  for (const json& resource : core["resources"]) {
    EXPECT_EQ(resource["namespaced"],
              resource["name"] != "nodes" && resource["name"] != "namespaces");
  }
}

// Its check of an object before it sends it. Without such a document it sends nothing.
TEST_F(KubectlTest, Apply_learns_that_the_server_validates_every_kind) {
  std::set<std::string> kinds;
  const json paths = Read("/openapi/v3?timeout=32s")["paths"];
  for (const auto& [path, document] : paths.items()) {
    const json schema = Read(document["serverRelativeURL"]);
    for (const json& resource : schema["paths"]) {
      const json& patch = resource["patch"];
      EXPECT_EQ(patch["parameters"][0], json({{"name", "fieldValidation"}, {"in", "query"}}));
      const json& kind = patch["x-kubernetes-group-version-kind"];
      const std::string group = kind["group"].get<std::string>();
      EXPECT_EQ(path, (group.empty() ? "api" : "apis/" + group) + "/" +
                          kind["version"].get<std::string>());
      kinds.insert(kind["kind"].get<std::string>());
    }
  }
  for (const char* kind : {"ServiceAccount", "Role", "RoleBinding", "ClusterRole",
                           "ClusterRoleBinding", "Secret", "Namespace", "VirtualMachine"}) {
    EXPECT_TRUE(kinds.contains(kind)) << kind;
  }
  const auto old = Send(Method::kGet, "/openapi/v2?timeout=32s");
  EXPECT_EQ(old.status, 200);
  EXPECT_EQ(old.body, "") << "a protocol buffer without kinds, which kubectl 1.20 does not check";
}

TEST_F(KubectlTest, Apply_makes_what_is_missing_and_patches_what_has_changed) {
  const std::string rbac = "/apis/rbac.authorization.k8s.io/v1";
  struct Kind {
    std::string path;
    std::string version;
    std::string kind;
  };
  for (const Kind& made : {Kind{"/api/v1/namespaces", "v1", "Namespace"},
                           Kind{"/api/v1/namespaces/nomad/serviceaccounts", "v1", "ServiceAccount"},
                           Kind{"/api/v1/namespaces/nomad/secrets", "v1", "Secret"},
                           Kind{rbac + "/namespaces/nomad/roles", kRbac, "Role"},
                           Kind{rbac + "/namespaces/nomad/rolebindings", kRbac, "RoleBinding"},
                           Kind{rbac + "/clusterroles", kRbac, "ClusterRole"},
                           Kind{rbac + "/clusterrolebindings", kRbac, "ClusterRoleBinding"}}) {
    const std::string item = made.path + "/autoscaler";
    EXPECT_EQ(Send(Method::kGet, item).status, 404) << made.kind;
    const json object = {
        {"apiVersion", made.version}, {"kind", made.kind}, {"metadata", {{"name", "autoscaler"}}}};
    EXPECT_EQ(
        Send(Method::kPost, made.path + "?fieldManager=x&fieldValidation=Strict", object).status,
        201)
        << made.kind;
    EXPECT_EQ(Send(Method::kPatch, item, {{"metadata", {{"labels", {{"a", "b"}}}}}}).status, 200);
    EXPECT_EQ(Read(item)["metadata"]["labels"], json({{"a", "b"}})) << made.kind;
  }
}

TEST_F(KubectlTest, A_strategic_patch_needs_a_built_in_kind_and_no_directive) {
  MakeVm("vm-1");
  const std::string vm = "/apis/kubevirt.io/v1/namespaces/nomad/virtualmachines/vm-1";
  EXPECT_EQ(Send(Method::kPatch, vm, json::object()).status, 415);
  const std::string host = "/api/v1/nodes/harvester-1";
  EXPECT_EQ(Send(Method::kPatch, host, {{"spec", {{"unschedulable", true}}}}).status, 200);
  EXPECT_EQ(Send(Method::kPatch, host, {{"spec", {{"$retainKeys", {"taints"}}}}}).status, 415);
}

TEST_F(KubectlTest, The_secret_of_a_service_account_gets_the_token_that_is_accepted) {
  options_.kube_token = "right";
  options_.admits_anonymous = true;
  const json secret = {{"metadata", {{"name", "token"}}},
                       {"type", "kubernetes.io/service-account-token"}};
  ASSERT_EQ(Send(Method::kPost, "/api/v1/namespaces/nomad/secrets", secret).status, 201);
  EXPECT_EQ(cluster().Secrets().at(0)["data"]["token"], base::Base64Encode("right"));
}

TEST_F(KubectlTest, A_create_in_protocol_buffers_is_refused_with_the_way_out) {
  const auto reply = Ask(System::kHarvester, Method::kPost, "/api/v1/namespaces", "k8s",
                         "application/vnd.kubernetes.protobuf");
  EXPECT_EQ(reply.status, 415);
  EXPECT_THAT(reply.body, HasSubstr("use kubectl apply"));
}

// "kubectl describe" selects by name, namespace, uid and kind.
TEST_F(KubectlTest, Describe_finds_the_events_of_the_newer_group_by_the_object_involved) {
  const json vm = {{"kind", "VirtualMachine"}, {"namespace", "nomad"}, {"name", "a"}, {"uid", "1"}};
  json other = vm;
  other["name"] = "b";
  for (const auto& [name, regarding] : {std::pair("a.1", vm), std::pair("b.1", other)}) {
    ASSERT_TRUE(cluster().PutObject({{"apiVersion", "events.k8s.io/v1"},
                                     {"kind", "Event"},
                                     {"metadata", {{"name", name}, {"namespace", "nomad"}}},
                                     {"regarding", regarding},
                                     {"note", "node n1 drains"},
                                     {"reportingController", "me"}}));
  }
  EXPECT_EQ(EventsOf("involvedObject.name=a,involvedObject.namespace=nomad,involvedObject.uid=1,"
                     "involvedObject.kind=VirtualMachine"),
            std::set<std::string>{"a.1"});
  EXPECT_EQ(EventsOf("involvedObject.uid=2"), std::set<std::string>{});
  EXPECT_EQ(EventsOf("involvedObject.kind=VirtualMachine"), (std::set<std::string>{"a.1", "b.1"}));
  EXPECT_EQ(Send(Method::kGet, "/api/v1/events?fieldSelector=regarding.name=a").status, 400);
  const json event = Read("/api/v1/namespaces/nomad/events/a.1");
  EXPECT_EQ(event["apiVersion"], "v1");
  EXPECT_EQ(event["involvedObject"], vm);
  EXPECT_EQ(event["message"], "node n1 drains");
  EXPECT_EQ(event["reportingComponent"], "me");
  EXPECT_FALSE(event.contains("regarding") || event.contains("note"));
}

TEST_F(KubectlTest, Describe_finds_the_pods_of_a_host) {
  JoinVm("a");
  const std::string pods = "/api/v1/pods?fieldSelector=status.phase!=Failed,spec.nodeName=";
  EXPECT_EQ(Read(pods + "harvester-1")["items"].size(), 1U);
  EXPECT_EQ(Read(pods + "harvester-2")["items"].size(), 0U);
}

TEST_F(KubectlTest, The_server_says_that_it_is_ready) {
  EXPECT_EQ(Send(Method::kGet, "/readyz").body, "ok");
}

}  // namespace
}  // namespace nomad_harvester::simulator
