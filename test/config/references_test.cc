// SPDX-License-Identifier: Apache-2.0
// Names of Harvester's objects, and maps of labels, annotations and tags.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config_test_support.h"
#include "values.h"

namespace nomad_harvester::config {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(ResourceRef, has_a_namespace_and_a_resource_name) {
  EXPECT_EQ(ValueOf(ResourceRef("default/vlan10")), (NamespacedName{"default", "vlan10"}));
  EXPECT_EQ(ValueOf(ResourceRef("a-b/x.y.z")), (NamespacedName{"a-b", "x.y.z"}));
  for (const char* const bad : {"vlan10", "/vlan10", "default/", "a.b/c", "a/b/c", "a/B", "a /b"}) {
    EXPECT_THAT(FaultOf(ResourceRef(bad)), HasSubstr("is not of the form NAMESPACE/NAME")) << bad;
  }
}

TEST(ImageRef, is_split_at_the_first_slash_and_free_behind_it) {
  EXPECT_EQ(ValueOf(ImageRef("default/ubuntu")), (NamespacedName{"default", "ubuntu"}));
  EXPECT_EQ(ValueOf(ImageRef("default/Größe 1")), (NamespacedName{"default", "Größe 1"}));
  EXPECT_FALSE(FaultOf(ImageRef("default/a/b")).empty());
  EXPECT_FALSE(FaultOf(ImageRef("default/\xff")).empty()) << "invalid UTF-8";
  EXPECT_FALSE(FaultOf(ImageRef("default/" + std::string(254, 'a'))).empty());
  EXPECT_EQ(ValueOf(ImageRef("default/" + std::string(253, 'a'))).name.size(), 253U);
}

TEST(ResourceRefs, keep_their_order) {
  EXPECT_THAT(ValueOf(ResourceRefs("b/2, a/1")),
              ElementsAre(NamespacedName{"b", "2"}, NamespacedName{"a", "1"}));
  EXPECT_THAT(ValueOf(ResourceRefs("")), IsEmpty());
}

TEST(ResourceRefs, name_the_element_that_is_wrong) {
  EXPECT_EQ(FaultOf(ResourceRefs("a/1,b")), "\"b\" is not of the form NAMESPACE/NAME");
  EXPECT_EQ(FaultOf(ResourceRefs("a/1,b/2,a/1")), "\"a/1\" is given twice");
  EXPECT_THAT(FaultOf(ResourceRefs("a/1,,b/2")), HasSubstr("empty element"));
}

TEST(Networks, are_attachments_or_the_management_network) {
  const std::vector<NetworkRef> networks = ValueOf(Networks("default/vlan10,management"));
  ASSERT_EQ(networks.size(), 2U);
  EXPECT_EQ(networks[0].attachment, (NamespacedName{"default", "vlan10"}));
  EXPECT_TRUE(networks[1].management);
}

TEST(Networks, given_twice_are_refused) {
  EXPECT_EQ(FaultOf(Networks("management,management")), "\"management\" is given twice");
  EXPECT_EQ(FaultOf(Networks("a/b,management,a/b")), "\"a/b\" is given twice");
}

TEST(Networks, without_a_namespace_are_refused) {
  EXPECT_EQ(FaultOf(Networks("vlan10")),
            "\"vlan10\" is neither NAMESPACE/NETWORK nor \"management\"");
  EXPECT_THAT(FaultOf(Networks("Management")), HasSubstr("neither"));
}

TEST(Networks, must_be_at_least_one) {
  EXPECT_EQ(FaultOf(Networks("")), "must name at least one network");
  EXPECT_THAT(FaultOf(Networks("a/b,")), HasSubstr("empty element"));
}

TEST(Labels, are_pairs_of_valid_keys_and_values) {
  EXPECT_EQ(ValueOf(Labels("a=1,example.org/b=,c=x.y_z-1")),
            (StringMap{{"a", "1"}, {"c", "x.y_z-1"}, {"example.org/b", ""}}));
  EXPECT_THAT(FaultOf(Labels("a b=1")), HasSubstr("\"a b\" is not a valid key"));
  EXPECT_THAT(FaultOf(Labels("-a=1")), HasSubstr("is not a valid key"));
  EXPECT_THAT(FaultOf(Labels("a=hello world")),
              HasSubstr("\"hello world\", the value of \"a\", is not a valid label value"));
  EXPECT_THAT(FaultOf(Labels("a=" + std::string(64, 'x'))),
              HasSubstr("is not a valid label value"));
}

TEST(Labels, that_are_not_a_map_are_refused) {
  EXPECT_THAT(FaultOf(Labels("a")), HasSubstr("not of the form key=value"));
  EXPECT_THAT(FaultOf(Labels("a=1,a=2")), HasSubstr("given twice"));
  EXPECT_THAT(FaultOf(Labels("=1")), HasSubstr("empty key"));
}

TEST(ReservedKeys, are_refused_in_labels_and_annotations) {
  for (const char* const key :
       {"nomad-harvester-autoscaler/pool", "nomad-harvester-autoscaler/anything",
        "harvesterhci.io/creator", "kubevirt.io/vm", "app.kubernetes.io/managed-by"}) {
    EXPECT_THAT(FaultOf(Labels(std::string(key) + "=x")), HasSubstr("is reserved")) << key;
    EXPECT_THAT(FaultOf(Annotations(std::string(key) + "=x")), HasSubstr("is reserved")) << key;
  }
}

TEST(ReservedKeys, similar_ones_are_free) {
  for (const char* const key : {"app.kubernetes.io/name", "tag.harvesterhci.io/x",
                                "example.org/harvesterhci.io", "kubevirt.io"}) {
    EXPECT_EQ(ValueOf(Labels(std::string(key) + "=x")).size(), 1U) << key;
  }
}

TEST(Annotations, may_have_any_value) {
  EXPECT_EQ(ValueOf(Annotations("a=hello: {world}, b=x=y")),
            (StringMap{{"a", "hello: {world}"}, {"b", "x=y"}}));
  EXPECT_THAT(FaultOf(Annotations("a b=1")), HasSubstr("is not a valid key"));
}

TEST(Tags, are_keys_behind_harvesters_prefix) {
  EXPECT_EQ(ValueOf(Tags("pool=batch")), (StringMap{{"pool", "batch"}}));
  EXPECT_THAT(FaultOf(Tags("example.org/pool=batch")), HasSubstr("is not a valid key"));
  EXPECT_THAT(FaultOf(Tags("a=b c")), HasSubstr("is not a valid label value"));
  EXPECT_THAT(FaultOf(Tags(std::string(64, 'a') + "=x")), HasSubstr("is not a valid key"));
}

}  // namespace
}  // namespace nomad_harvester::config
