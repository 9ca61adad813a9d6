// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "nomad_harvester/harvester/vm_spec.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "support/status_matchers.h"

namespace nomad_harvester::harvester {
namespace {

using support::IsOkAndHolds;
using support::StatusIs;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const TemplateVariables kVariables = {{"vm_name", "web-x"},
                                      {"env.HARVESTER_TEMPLATE_T", "s3cret: ["}};
const std::vector<std::string> kNoKeys;
const std::vector<std::string> kOneKey = {"ssh-ed25519 AAAAC3 ops@example"};

TEST(ComposeUserData, without_a_template_is_an_empty_cloud_config) {
  EXPECT_THAT(ComposeUserData("", kVariables, kNoKeys), IsOkAndHolds("#cloud-config\n"));
  EXPECT_THAT(ComposeUserData("", kVariables, kOneKey),
              IsOkAndHolds("#cloud-config\nssh_authorized_keys:\n"
                           "  - \"ssh-ed25519 AAAAC3 ops@example\"\n"));
}

TEST(ComposeUserData, passes_the_rendered_text_on_byte_for_byte) {
  const std::string source =
      "#cloud-config\n# a comment\nhostname:   {{vm_name}}\n\n\nruncmd:   [ [ls,'-l'] ]  \n";
  EXPECT_THAT(ComposeUserData(source, kVariables, kNoKeys),
              IsOkAndHolds("#cloud-config\n# a comment\nhostname:   web-x\n\n\n"
                           "runcmd:   [ [ls,'-l'] ]  \n"));
}

TEST(ComposeUserData, leaves_other_kinds_of_user_data_alone) {
  for (const char* text : {"#!/bin/sh\necho hi\n", "#include\nhttps://x\n", "Content-Type: x\n",
                           "#cloud-config-archive\n- a\n- [",
                           "## template: jinja\n#cloud-config\n{", "#cloud-boothook\n["}) {
    EXPECT_THAT(ComposeUserData(std::string(text), kVariables, kNoKeys), IsOkAndHolds(text));
  }
}

TEST(ComposeUserData, refuses_keys_for_other_kinds_of_user_data) {
  EXPECT_THAT(ComposeUserData("#!/bin/sh\n", kVariables, kOneKey),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("ssh_keys"), HasSubstr("#cloud-config"))));
}

TEST(ComposeUserData, checks_the_YAML_after_rendering) {
  EXPECT_THAT(ComposeUserData("#cloud-config\na: 1\nb: {{env.HARVESTER_TEMPLATE_T}}\n", kVariables,
                              kNoKeys),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("YAML"), HasSubstr("line"), Not(HasSubstr("s3cret")))));
  EXPECT_THAT(ComposeUserData("#cloud-config\n- a\n", kVariables, kNoKeys),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("mapping")));
}

TEST(ComposeUserData, passes_on_what_is_wrong_with_the_template) {
  EXPECT_THAT(ComposeUserData("#cloud-config\nhostname: {{name}}\n", kVariables, kNoKeys),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("line 2, column 11")));
}

TEST(ComposeUserData, adds_keys_after_rendering) {
  EXPECT_THAT(ComposeUserData("#cloud-config\nhostname: {{vm_name}}\n", kVariables, kOneKey),
              IsOkAndHolds("#cloud-config\nssh_authorized_keys:\n"
                           "  - \"ssh-ed25519 AAAAC3 ops@example\"\nhostname: web-x\n"));
}

TEST(ComposeUserData, keeps_cloud_config_on_the_first_line_after_a_change_of_delimiters) {
  EXPECT_THAT(ComposeUserData("{{=<% %>=}}\n#cloud-config\nruncmd: ['echo {{ v1.x }}']\n",
                              kVariables, kNoKeys),
              IsOkAndHolds("#cloud-config\nruncmd: ['echo {{ v1.x }}']\n"));
}

}  // namespace
}  // namespace nomad_harvester::harvester
