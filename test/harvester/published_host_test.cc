// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "nomad_harvester/harvester/metadata.h"
#include "nomad_harvester/harvester/virtual_machine.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "support/status_matchers.h"

namespace nomad_harvester::harvester {
namespace {

using nlohmann::json;
using support::IsOkAndHolds;
using support::StatusIs;
using testing::AllOf;
using testing::HasSubstr;

TEST(PublishedHost, is_spelled_as_the_documentation_says) {
  const PublishedHost published{.node_id = "n-1", .host = "rack1-a", .zone = "rack1"};
  EXPECT_EQ(json::parse(ToAnnotation(published)),
            json::parse(R"({"node_id": "n-1", "host": "rack1-a", "zone": "rack1"})"));
  EXPECT_THAT(ParsePublishedHost(ToAnnotation(published)), IsOkAndHolds(published));
}

TEST(PublishedHost, leaves_a_zone_out_that_is_unknown) {
  const PublishedHost published{.node_id = "n-1", .host = "a"};
  EXPECT_EQ(json::parse(ToAnnotation(published)),
            json::parse(R"({"node_id": "n-1", "host": "a"})"));
  EXPECT_THAT(ParsePublishedHost(ToAnnotation(published)), IsOkAndHolds(published));
}

TEST(PublishedHost, keeps_members_that_it_does_not_know) {
  const auto read = ParsePublishedHost(R"({"node_id":"n","host":"a","later":[1]})");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(ToAnnotation(*read), HasSubstr(R"("later":[1])"));
}

TEST(PublishedHost, names_every_member_that_cannot_be_read) {
  EXPECT_THAT(ParsePublishedHost(R"({"node_id":"","zone":3})"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("node_id: is empty"), HasSubstr("host: is missing"),
                             HasSubstr("zone"))));
}

VirtualMachine VmWith(const char* annotation) {
  return ParseVirtualMachine(
      {{"metadata", {{"name", "a"}, {"annotations", {{kPublishedHostAnnotation, annotation}}}}}});
}

TEST(PublishedHost, of_a_vm_counts_as_absent_if_it_cannot_be_read) {
  const VirtualMachine readable = VmWith(R"({"node_id":"n","host":"a"})");
  EXPECT_TRUE(readable.has_published_host);
  ASSERT_TRUE(readable.published_host.has_value());
  EXPECT_EQ(readable.published_host->host, "a");
  const VirtualMachine edited = VmWith("yes");
  EXPECT_TRUE(edited.has_published_host);
  EXPECT_FALSE(edited.published_host.has_value());
  EXPECT_FALSE(ParseVirtualMachine({{"metadata", {{"name", "a"}}}}).has_published_host);
}

TEST(Instance, names_its_host) {
  EXPECT_EQ(ParseInstance({{"status", {{"nodeName", "rack1-a"}}}}).host, "rack1-a");
  EXPECT_EQ(ParseInstance({{"status", {{"phase", "Scheduling"}}}}).host, "");
}

}  // namespace
}  // namespace nomad_harvester::harvester
