// SPDX-License-Identifier: Apache-2.0
#include "paths.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "support/status_matchers.h"

namespace nomad_harvester::kube {
namespace {

using absl::StatusCode;
using support::IsOkAndHolds;
using support::StatusIs;
using testing::HasSubstr;

TEST(Paths, each_resource_has_the_path_that_Harvester_serves) {
  struct Row {
    ResourceType type;
    const char* path;
  };
  for (const Row& row : {
           Row{kVirtualMachines, "/apis/kubevirt.io/v1/namespaces/ns/virtualmachines"},
           Row{kVirtualMachineInstances,
               "/apis/kubevirt.io/v1/namespaces/ns/virtualmachineinstances"},
           Row{kVirtualMachineImages,
               "/apis/harvesterhci.io/v1beta1/namespaces/ns/virtualmachineimages"},
           Row{kKeyPairs, "/apis/harvesterhci.io/v1beta1/namespaces/ns/keypairs"},
           Row{kNetworkAttachments,
               "/apis/k8s.cni.cncf.io/v1/namespaces/ns/network-attachment-definitions"},
           Row{kSecrets, "/api/v1/namespaces/ns/secrets"},
           Row{kPersistentVolumeClaims, "/api/v1/namespaces/ns/persistentvolumeclaims"},
           Row{kResourceQuotas, "/api/v1/namespaces/ns/resourcequotas"},
           Row{kLeases, "/apis/coordination.k8s.io/v1/namespaces/ns/leases"},
       }) {
    EXPECT_THAT(CollectionPath(row.type, "ns"), IsOkAndHolds(row.path));
    EXPECT_THAT(ObjectPath(row.type, "ns", "x"), IsOkAndHolds(row.path + std::string("/x")));
  }
}

TEST(Paths, without_a_namespace_the_path_names_none) {
  EXPECT_THAT(CollectionPath(kVirtualMachines, ""),
              IsOkAndHolds("/apis/kubevirt.io/v1/virtualmachines"));
  EXPECT_THAT(ObjectPath(kSecrets, "", "x"), IsOkAndHolds("/api/v1/secrets/x"));
}

TEST(Paths, a_segment_that_would_change_the_path_is_refused) {
  for (const char* text : {".", "..", "/", "a/b", "../..", "%2e%2e", "a%"}) {
    EXPECT_THAT(ObjectPath(kSecrets, "ns", text),
                StatusIs(StatusCode::kInvalidArgument, HasSubstr("cannot be a name")));
    EXPECT_THAT(ObjectPath(kSecrets, text, "x"),
                StatusIs(StatusCode::kInvalidArgument, HasSubstr("cannot be a namespace")));
    EXPECT_THAT(CollectionPath(kSecrets, text), StatusIs(StatusCode::kInvalidArgument));
  }
}

TEST(Paths, an_empty_name_is_refused_since_it_is_the_whole_collection) {
  EXPECT_THAT(ObjectPath(kSecrets, "ns", ""),
              StatusIs(StatusCode::kInvalidArgument, "\"\" cannot be a name"));
}

TEST(Paths, dots_inside_a_name_are_harmless) {
  EXPECT_THAT(ObjectPath(kSecrets, "ns", "a..b.c"),
              IsOkAndHolds("/api/v1/namespaces/ns/secrets/a..b.c"));
  EXPECT_THAT(ObjectPath(kSecrets, "ns", "..."), IsOkAndHolds("/api/v1/namespaces/ns/secrets/..."));
}

TEST(Describe, describes_an_object_and_a_collection) {
  EXPECT_EQ(Describe(kVirtualMachines, "default", "web-1"), "VirtualMachine default/web-1");
  EXPECT_EQ(Describe(kVirtualMachines, "", "web-1"), "VirtualMachine web-1");
  EXPECT_EQ(DescribeCollection(kVirtualMachines, "default"), "VirtualMachines in default");
  EXPECT_EQ(DescribeCollection({"", "v1", "classes", "Class"}, ""), "Classes");
}

}  // namespace
}  // namespace nomad_harvester::kube
