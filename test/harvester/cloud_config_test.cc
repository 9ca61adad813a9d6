// SPDX-License-Identifier: Apache-2.0
#include "cloud_config.h"

#include <string>
#include <vector>

#include "nomad_harvester/harvester/vm_spec.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "support/status_matchers.h"

namespace nomad_harvester::harvester {
namespace {

using support::IsOk;
using support::IsOkAndHolds;
using support::StatusIs;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const std::vector<std::string> kTwoKeys = {"ssh-ed25519 AAAAone a@x", "ssh-rsa AAAAtwo"};

absl::Status CheckCloudConfig(const std::string& text) {
  return AddAuthorizedKeys(text, {}).status();
}

TEST(IsCloudConfig, is_what_cloud_init_takes_for_one) {
  for (const char* text : {"#cloud-config", "#cloud-config\na: 1", "\n  #cloud-config\n",
                           "#Cloud-Config\r\n", "#cloud-config # mine\n"}) {
    EXPECT_TRUE(IsCloudConfig(text)) << text;
  }
  for (const char* text : {"", "#cloud", "# cloud-config", "a: 1", "#!/bin/sh\n#cloud-config",
                           "#cloud-config-archive", "#cloud-config-jsonp"}) {
    EXPECT_FALSE(IsCloudConfig(text)) << text;
  }
}

TEST(IsRunByCloudInit, knows_the_headers_of_cloud_init) {
  for (const char* text :
       {"#cloud-config\n", "\n #Cloud-Config", "#!/bin/sh\n", "#include\nhttp://x",
        "#include-once\n", "#part-handler\n", "#cloud-boothook\n", "#cloud-config-archive\n",
        "#cloud-config-jsonp\n", "## template: jinja\n#cloud-config\n", "\x1f\x8b\x08",
        "Content-Type: multipart/mixed; boundary=\"=\"\nMIME-Version: 1.0\n"}) {
    EXPECT_TRUE(IsRunByCloudInit(text)) << text;
  }
  for (const char* text :
       {"#cloudconfig\n", "# cloud-config\n", "# made by us\n#cloud-config\n",
        "\xEF\xBB\xBF#cloud-config\n", "I2Nsb3VkLWNvbmZpZwo=", "variant: flatcar\nversion: 1.0.0\n",
        R"({"ignition":{"version":"3.4.0"}})", "hostname: x\n"}) {
    EXPECT_FALSE(IsRunByCloudInit(text)) << text;
  }
}

TEST(CheckCloudConfig, accepts_a_mapping_or_nothing) {
  for (const char* text :
       {"#cloud-config\n", "#cloud-config", "#cloud-config\na: 1\n",
        "#cloud-config\n{\"a\": [1, 2]}", "#cloud-config\n---\na: 1\n...\n",
        "#cloud-config\nnull\n", "#cloud-config\na: &x [1]\nb: *x\n",
        "#cloud-config\n? [complex]\n: 1\n", "#cloud-config\na: !!binary aGk=\n"}) {
    EXPECT_THAT(CheckCloudConfig(text), IsOk()) << text;
  }
}

TEST(CheckCloudConfig, names_the_line_of_what_is_not_YAML) {
  EXPECT_THAT(CheckCloudConfig("#cloud-config\na: 1\nb: \"open\nc: 2\n"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("line 3")));
  EXPECT_THAT(CheckCloudConfig("#cloud-config\na: 1\nb: ]\n"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("line 3")));
  EXPECT_THAT(CheckCloudConfig("#cloud-config\na: *nowhere\n"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("line 2")));
}

// The library accepts these as YAML; cloud-init's parser does not.
TEST(CheckCloudConfig, names_the_line_of_a_key_without_a_colon) {
  for (const char* text :
       {"#cloud-config\na: 1\npackages\n", "#cloud-config\na:\n  - x\nb\n",
        "#cloud-config\na: |\n x\ny\n", "#cloud-config\na:\n  - b: 1\n    c\n"}) {
    EXPECT_THAT(CheckCloudConfig(text), StatusIs(absl::StatusCode::kInvalidArgument,
                                                 AllOf(HasSubstr("line "), HasSubstr("colon"))))
        << text;
  }
  EXPECT_THAT(CheckCloudConfig("#cloud-config\na: 1\npackages\n  - x\n"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("line 3")));
  for (const char* text : {"#cloud-config\na:\n", "#cloud-config\na:\nb: ~\n",
                           "#cloud-config\n? a\n", "#cloud-config\nx: {a, b: 1}\n"}) {
    EXPECT_THAT(CheckCloudConfig(text), IsOk()) << text;
  }
}

TEST(CheckCloudConfig, names_the_line_of_a_quoted_scalar_that_nothing_ends) {
  for (const char* text :
       {"#cloud-config\na: 'x\n", "#cloud-config\na: \"x\n\n", "#cloud-config\na: 'it''s\n",
        "#cloud-config\na: \"x\\\"\n", "#cloud-config\n'a\n"}) {
    EXPECT_THAT(CheckCloudConfig(text),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("line ")))
        << text;
  }
  for (const char* text : {"#cloud-config\na: 'it''s'\n", "#cloud-config\na: \"x\\\"\"\n",
                           "#cloud-config\na: it's\n", "#cloud-config\na: |\n  'x\n"}) {
    EXPECT_THAT(CheckCloudConfig(text), IsOk()) << text;
  }
}

TEST(CheckCloudConfig, refuses_bytes_that_YAML_does_not_allow) {
  EXPECT_THAT(CheckCloudConfig("#cloud-config\na: \x01\n"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("line 2")));
  EXPECT_THAT(CheckCloudConfig("#cloud-config\na: \xff\n"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("UTF-8")));
  EXPECT_THAT(CheckCloudConfig("#cloud-config\r\na: ä\t# x\r\n"), IsOk());
}

TEST(CheckCloudConfig, P4_never_contains_a_text_that_restarts_the_agents_policies) {
  for (const char* text : {"#cloud-config\na: \"open", "#cloud-config\na: 'open",
                           "#cloud-config\n[", "#cloud-config\n{a: "}) {
    EXPECT_THAT(CheckCloudConfig(text),
                StatusIs(absl::StatusCode::kInvalidArgument, Not(HasSubstr("EOF"))));
  }
}

TEST(CheckCloudConfig, P3_never_quotes_the_text) {
  for (const char* text : {"#cloud-config\na: *s3cret\n", "#cloud-config\ns3cret: [\n",
                           "#cloud-config\na: \"s3cret\\q\"\n", "%YAML s3cret\n---\na: 1\n",
                           "#cloud-config\n\ts3cret: 1\n", "#cloud-config\ns3cret\n"}) {
    EXPECT_THAT(CheckCloudConfig(text),
                StatusIs(absl::StatusCode::kInvalidArgument, Not(HasSubstr("s3cret"))));
  }
}

TEST(CheckCloudConfig, refuses_what_is_not_a_mapping_or_more_than_one_document) {
  for (const char* text :
       {"#cloud-config\n- a\n", "#cloud-config\nplain\n", "#cloud-config\n[a]\n"}) {
    EXPECT_THAT(CheckCloudConfig(text),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("mapping")))
        << text;
  }
  EXPECT_THAT(CheckCloudConfig("#cloud-config\na: 1\n---\nb: 2\n"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("more than one")));
}

TEST(CheckCloudConfig, C2_names_the_line_of_a_second_top_level_key_of_one_name) {
  for (const char* text :
       {"#cloud-config\nruncmd: [a]\nx: 1\nruncmd: [b]\n", "#cloud-config\nx:\n- x: 1\n'x':\n",
        "#cloud-config\n{x: 1,\ny: 2,\nx: 3}"}) {
    EXPECT_THAT(CheckCloudConfig(text),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("not valid YAML: line 4: this top-level key is there already")))
        << text;
  }
  EXPECT_THAT(CheckCloudConfig("#cloud-config\nx: {y: 1}\ny: [{x: 1}, {x: 2}]\n"), IsOk());
  EXPECT_THAT(CheckCloudConfig("#cloud-config\nx: &x {y: 1}\nz: &z {y: 2}\n<<: *x\n<<: *z\n"),
              IsOk())
      << "each merge counts";
}

TEST(CheckCloudConfig, P2_survives_deep_nesting_and_aliases_that_double) {
  EXPECT_THAT(CheckCloudConfig("#cloud-config\na: " + std::string(100000, '[')),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(CheckCloudConfig("#cloud-config\na: " + std::string(100000, '{')),
              StatusIs(absl::StatusCode::kInvalidArgument));
  std::string bomb = "#cloud-config\na0: &a0 [x, x]\n";
  for (int i = 1; i < 64; ++i) {
    const std::string last = "*a" + std::to_string(i - 1);
    bomb +=
        "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + last + ", " + last + "]\n";
  }
  EXPECT_THAT(CheckCloudConfig(bomb), IsOk());
  EXPECT_THAT(AddAuthorizedKeys(bomb, kTwoKeys), IsOk());
}

struct Merge {
  std::string text;
  std::string merged;
};

TEST(AddAuthorizedKeys, changes_no_other_byte) {
  const Merge cases[] = {
      // No list yet.
      {"#cloud-config\n", "#cloud-config\nssh_authorized_keys:\n@@  - "},
      {"#cloud-config", "#cloud-config\nssh_authorized_keys:\n@@  - "},
      {"#cloud-config\n# only a comment\n",
       "#cloud-config\n# only a comment\nssh_authorized_keys:\n@@  - "},
      {"#cloud-config\n# comment\nusers: [a] # more\nperm: '0644'\n...\n",
       "#cloud-config\n# comment\nssh_authorized_keys:\n@@  - users: [a] # more\nperm: "
       "'0644'\n...\n"},
      {"#cloud-config\n  a: 1\n  b: 2",
       "#cloud-config\n  ssh_authorized_keys:\n@@    -   a: 1\n  b: 2"},
      {"#cloud-config\na: 1\nusers:\n  - ssh_authorized_keys: [x]\n",
       "#cloud-config\nssh_authorized_keys:\n@@  - a: 1\nusers:\n  - ssh_authorized_keys: [x]\n"},
      // A block list.
      {"#cloud-config\nssh_authorized_keys:\n- mine\nb: 2\n",
       "#cloud-config\nssh_authorized_keys:\n@@- - mine\nb: 2\n"},
      {"#cloud-config\nä: ö\nssh_authorized_keys: # these\n    # and\n    - mine # me\n",
       "#cloud-config\nä: ö\nssh_authorized_keys: # these\n    # and\n@@    -     - mine # me\n"},
  };
  for (const Merge& c : cases) {
    const std::size_t at = c.merged.find("@@");
    const std::size_t dash = c.merged.find("- ", at);
    const std::string item = c.merged.substr(at + 2, dash + 2 - at - 2);
    const std::string merged = c.merged.substr(0, at) + item + "\"ssh-ed25519 AAAAone a@x\"\n" +
                               item + "\"ssh-rsa AAAAtwo\"\n" + c.merged.substr(dash + 2);
    EXPECT_THAT(AddAuthorizedKeys(c.text, kTwoKeys), IsOkAndHolds(merged)) << c.text;
  }
}

TEST(AddAuthorizedKeys, works_on_flow_style_too) {
  const std::string items = "\"ssh-ed25519 AAAAone a@x\", \"ssh-rsa AAAAtwo\", ";
  const Merge cases[] = {
      {"#cloud-config\nssh_authorized_keys: [mine]\n",
       "#cloud-config\nssh_authorized_keys: [" + items + "mine]\n"},
      {"#cloud-config\nssh_authorized_keys: []\n",
       "#cloud-config\nssh_authorized_keys: [" + items + "]\n"},
      {"#cloud-config\n{\"a\": {\"b\": 1}}",
       "#cloud-config\n{\"ssh_authorized_keys\": [" + items + "], \"a\": {\"b\": 1}}"},
      {"#cloud-config\n{}\n", "#cloud-config\n{\"ssh_authorized_keys\": [" + items + "], }\n"},
      {"#cloud-config\n{\"ssh_authorized_keys\":[\"mine\"],\"a\":1}",
       "#cloud-config\n{\"ssh_authorized_keys\":[" + items + "\"mine\"],\"a\":1}"},
  };
  for (const Merge& c : cases) {
    EXPECT_THAT(AddAuthorizedKeys(c.text, kTwoKeys), IsOkAndHolds(c.merged)) << c.text;
    EXPECT_THAT(CheckCloudConfig(c.merged), IsOk()) << c.merged;
  }
}

TEST(AddAuthorizedKeys, adds_no_key_twice) {
  const std::string text =
      "#cloud-config\nssh_authorized_keys:\n  - ssh-ed25519 AAAAone other-comment\n"
      "  - 'from=\"10.0.0.0/8\" ssh-rsa AAAAtwo'\n";
  EXPECT_THAT(AddAuthorizedKeys(text, kTwoKeys), IsOkAndHolds(text));
  EXPECT_THAT(AddAuthorizedKeys(text, {"ssh-rsa AAAAnew", " ssh-rsa AAAAnew again\n", ""}),
              IsOkAndHolds("#cloud-config\nssh_authorized_keys:\n  - \"ssh-rsa AAAAnew\"\n"
                           "  - ssh-ed25519 AAAAone other-comment\n"
                           "  - 'from=\"10.0.0.0/8\" ssh-rsa AAAAtwo'\n"));
}

TEST(AddAuthorizedKeys, tells_keys_that_are_not_OpenSSH_keys_apart_by_their_text) {
  EXPECT_THAT(AddAuthorizedKeys("#cloud-config\nssh_authorized_keys: [abc]\n", {"abc", "abd"}),
              IsOkAndHolds("#cloud-config\nssh_authorized_keys: [\"abd\", abc]\n"));
}

TEST(AddAuthorizedKeys, quotes_whatever_a_key_holds) {
  EXPECT_THAT(AddAuthorizedKeys("#cloud-config\n", {"ssh-rsa AAAA a\"b\\c: #x\n\ty"}),
              IsOkAndHolds("#cloud-config\nssh_authorized_keys:\n"
                           "  - \"ssh-rsa AAAA a\\\"b\\\\c: #x\\n\\ty\"\n"));
}

TEST(AddAuthorizedKeys, refuses_what_it_cannot_add_to) {
  for (const char* text :
       {"#cloud-config\nssh_authorized_keys: one\n", "#cloud-config\nssh_authorized_keys:\n",
        "#cloud-config\nssh_authorized_keys: {a: b}\n",
        "#cloud-config\nk: &k [a]\nssh_authorized_keys: *k\n"}) {
    EXPECT_THAT(AddAuthorizedKeys(text, kTwoKeys),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("must be a list")))
        << text;
  }
  EXPECT_THAT(
      AddAuthorizedKeys("#cloud-config\nb: &b {ssh_authorized_keys: [x]}\n<<: *b\n", kTwoKeys),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("merge key")));
  for (const char* text : {"#cloud-config\nssh_authorized_keys: &k [a]\n",
                           "#cloud-config\nssh_authorized_keys: !!seq [a]\n"}) {
    EXPECT_THAT(AddAuthorizedKeys(text, kTwoKeys),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("cannot be added"), Not(HasSubstr("AAAA")))))
        << text;
  }
  EXPECT_THAT(AddAuthorizedKeys("#cloud-config\n- a\n", kTwoKeys),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("mapping")));
}

}  // namespace
}  // namespace nomad_harvester::harvester
