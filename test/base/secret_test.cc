// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/base/secret.h"

#include <atomic>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "nomad_harvester/base/encoding.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace nomad_harvester::base {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Secret, is_not_printed) {
  std::ostringstream text;
  text << Secret("sesame-street");
  EXPECT_EQ(text.str(), "REDACTED");
  EXPECT_EQ(Secret("sesame-street").Reveal(), "sesame-street");
}

TEST(Secret, compares_by_its_content) {
  EXPECT_EQ(Secret("sesame-street"), Secret("sesame-street"));
  EXPECT_FALSE(Secret("sesame-street") == Secret("sesame"));
  EXPECT_EQ(Secret(), Secret(""));
  EXPECT_TRUE(Secret("").empty());
}

TEST(WithoutSecrets, P3_every_occurrence_of_every_secret_is_replaced) {
  const Secret token("sesame-street");
  const Secret password("hunter2");
  EXPECT_EQ(WithoutSecrets("hunter2: sesame-street is sesame-street."),
            "REDACTED: REDACTED is REDACTED.");
}

TEST(WithoutSecrets, P3_a_secret_is_recognised_escaped_and_in_base64) {
  const Secret password("p@ss w/rd");
  EXPECT_EQ(WithoutSecrets("http://user:p%40ss%20w%2Frd@proxy"), "http://user:REDACTED@proxy");
  const Secret header("user:p@ss w/rd");
  EXPECT_EQ(WithoutSecrets("Basic " + Base64Encode("user:p@ss w/rd")), "Basic REDACTED");
}

TEST(WithoutSecrets, P3_a_token_is_recognised_as_proxies_and_libraries_escape_it) {
  const Secret token("kubeconfig-u:ab/cd+ef=xy");
  for (const std::string text :
       {"kubeconfig-u%3Aab%2Fcd%2Bef%3Dxy", "kubeconfig-u%3aab%2fcd%2bef%3dxy",
        "kubeconfig-u:ab%2Fcd+ef=xy", "kubeconfig-u:ab%2fcd+ef=xy"}) {
    EXPECT_EQ(WithoutSecrets(text), "REDACTED") << text;
  }
}

TEST(WithoutSecrets, other_escapes_stay) {
  const Secret password("p@ss w/rd");
  for (const std::string text : {"p%40ss%20w%2Erd", "p%40ss%20w", "p@ss+", "100 %", "%+%+%",
                                 "p%4ss%20w%2Frd", "q%40ss%20w%2Frd"}) {
    EXPECT_EQ(WithoutSecrets(text), text);
  }
}

TEST(WithoutSecrets, P3_a_secret_is_recognised_in_each_base64) {
  const Secret password("~~~??\?>>>y");
  for (const std::string text : {"fn5+Pz8/Pj4+eQ==", "fn5+Pz8/Pj4+eQ", "fn5-Pz8_Pj4-eQ==",
                                 "fn5-Pz8_Pj4-eQ", "fn5%2BPz8%2FPj4%2BeQ%3D%3D"}) {
    EXPECT_EQ(WithoutSecrets(text + "."), "REDACTED.");
  }
}

TEST(WithoutSecrets, P3_a_secret_that_contains_another_one_leaves_no_rest) {
  const Secret contained("sesame");
  const Secret whole("open-sesame-street");
  const Secret other("open-sesame");
  EXPECT_EQ(WithoutSecrets("open-sesame-street, sesame"), "REDACTED, REDACTED");
}

TEST(WithoutSecrets, P3_each_line_of_a_key_is_replaced_whatever_the_line_ends) {
  const std::string first(64, 'A');
  const std::string second(64, 'B');
  const Secret key("-----BEGIN PRIVATE KEY-----\n" + first + "\r\n" + second +
                   "\nc2hvcnQ=\n-----END PRIVATE KEY-----\n");
  const std::string text =
      WithoutSecrets("\"-----BEGIN PRIVATE KEY-----\\n" + first + "\" " + second);
  EXPECT_EQ(text, "\"-----BEGIN PRIVATE KEY-----\\nREDACTED\" REDACTED");
}

// As "openssl pkcs12 -nodes" writes it.
TEST(WithoutSecrets, P3_of_PEM_with_attributes_the_lines_of_its_blocks_are_replaced) {
  const std::string line(64, 'A');
  const std::string attributes =
      "Bag Attributes\n    friendlyName: production-cluster\nKey Attributes: <No Attributes>\n";
  const std::string block =
      "-----BEGIN PRIVATE KEY-----\n" + line + "\n-----END PRIVATE KEY-----\n";
  for (const std::string& pem : {attributes + block, block + attributes + block}) {
    const Secret key(pem);
    EXPECT_EQ(WithoutSecrets("friendlyName: production-cluster, " + line),
              "friendlyName: production-cluster, REDACTED");
  }
}

TEST(WithoutSecrets, P3_a_key_is_recognised_in_base64_as_kubeconfigs_hold_it) {
  const std::string pem =
      "-----BEGIN PRIVATE KEY-----\n" + std::string(64, 'A') + "\n-----END PRIVATE KEY-----\n";
  const Secret key(pem);
  EXPECT_EQ(WithoutSecrets("client-key-data: " + Base64Encode(pem)), "client-key-data: REDACTED");
}

TEST(WithoutSecrets, P3_a_secret_is_known_until_its_last_copy_is_gone) {
  std::optional<Secret> first(Secret("sesame-street"));
  std::optional<Secret> copy(*first);
  std::optional<Secret> equal(Secret("sesame-street"));
  first.reset();
  EXPECT_EQ(WithoutSecrets("sesame-street"), "REDACTED");
  equal.reset();
  EXPECT_EQ(WithoutSecrets("sesame-street"), "REDACTED");
  copy.reset();
  EXPECT_EQ(WithoutSecrets("sesame-street"), "sesame-street");
}

TEST(WithoutSecrets, P3_of_secrets_that_overlap_nothing_is_left) {
  const Secret first("abcdefgh");
  const Secret second("efghijklmnop");
  EXPECT_EQ(WithoutSecrets("<abcdefghijklmnop>"), "<REDACTED>");
  EXPECT_EQ(WithoutSecrets("efghijklmnopabcdefgh"), "REDACTEDREDACTED");
}

TEST(WithoutSecrets, P3_the_lines_of_a_text_are_replaced_alone_and_as_a_webhook_quotes_them) {
  const std::string text =
      "short: 1\nlet\ncontinue\n a: b\n  password: \"hunter2-hunter2\"\r\nvm-of-the-pool-x\n";
  std::optional<Secret> lines(Secret::Lines(text, {"vm-of-the-pool-x"}));
  EXPECT_EQ(WithoutSecrets("got password: \"hunter2-hunter2\"!"), "got REDACTED!");
  EXPECT_EQ(WithoutSecrets(R"("continue\n  password: \"hunter2-hunter2\"\r\n")"),
            R"("continue\n  REDACTED\r\n")");
  EXPECT_EQ(WithoutSecrets("userdata: " + Base64Encode(text)), "userdata: REDACTED");
  EXPECT_EQ(WithoutSecrets("let it continue: vm-of-the-pool-x, a: b, short: 1"),
            "let it continue: vm-of-the-pool-x, a: b, REDACTED");
  lines.reset();
  EXPECT_EQ(WithoutSecrets("password: \"hunter2-hunter2\""), "password: \"hunter2-hunter2\"");
}

// A search for each secret would make this test take seconds.
TEST(WithoutSecrets, P3_does_not_take_longer_with_many_secrets) {
  std::vector<Secret> texts;
  for (int vm = 0; vm < 10; ++vm) {
    std::string text;
    for (int line = 0; line < 2000; ++line) {
      text += "- a line of user data, " + std::to_string(vm) + "/" + std::to_string(line) + ".\n";
    }
    texts.push_back(Secret::Lines(text));
  }
  const std::string record = "Created a VM, whose node has yet to join the pool: web-x";
  for (int i = 0; i < 2000; ++i) EXPECT_EQ(WithoutSecrets(record), record);
  EXPECT_EQ(WithoutSecrets("- a line of user data, 9/1999."), "REDACTED");
}

TEST(CredentialIn, C2_names_the_key_of_a_credential_of_the_plugin) {
  const std::string token = "a1b2c3d4-0000-4000-8000-123456789abc";
  std::optional<Secret> unnamed{Secret(token)};
  EXPECT_EQ(CredentialIn("token=" + token), std::nullopt);
  std::optional<Secret> named(Secret(token, "nomad_token"));
  EXPECT_EQ(CredentialIn("token=" + token), "nomad_token");
  EXPECT_EQ(CredentialIn("content: " + Base64Encode(token)), "nomad_token");
  EXPECT_EQ(CredentialIn("token=a1b2c3d4"), std::nullopt);
  named.reset();
  EXPECT_EQ(CredentialIn("token=" + token), std::nullopt);
  const Secret password("letmein-please", "nomad_http-auth");
  EXPECT_EQ(CredentialIn("letmein-please"), std::nullopt) << "a text may have it by chance";
}

TEST(WithoutSecrets, short_secrets_do_not_garble_ordinary_words) {
  const Secret password("a");
  const Secret pin("state");
  EXPECT_EQ(WithoutSecrets("a status that stated"), "a status that stated");
}

TEST(WithoutSecrets, P3_holds_while_other_threads_change_what_is_secret) {
  const Secret constant("sesame-street");
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([i, &stop] {
      while (!stop) {
        const Secret token("token-of-thread-" + std::to_string(i));
        const Secret copy = token;
        EXPECT_EQ(WithoutSecrets("x" + copy.Reveal()), "xREDACTED");
      }
    });
  }
  for (int i = 0; i < 2000; ++i) {
    EXPECT_THAT(WithoutSecrets("it is sesame-street"), Not(HasSubstr("sesame")));
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace nomad_harvester::base
