// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "request_text.h"

namespace nomad_harvester::http {
namespace {

TEST(RedactTarget, a_path_stays_as_it_is) {
  EXPECT_EQ(RedactTarget("/apis/kubevirt.io/v1/namespaces/default/virtualmachines/web-1"),
            "/apis/kubevirt.io/v1/namespaces/default/virtualmachines/web-1");
  EXPECT_EQ(RedactTarget(""), "");
}

TEST(RedactTarget, known_keys_keep_their_values) {
  const std::string target =
      "/v1/nodes?index=7&wait=5s&namespace=%2A&region=eu&resources=true&per_page=100&next_token=x"
      "&task_states=true&labelSelector=pool%3Dweb&fieldSelector=a&limit=100&dryRun=All"
      "&fieldValidation=Strict";
  EXPECT_EQ(RedactTarget(target), target);
}

TEST(RedactTarget, unknown_keys_lose_their_values) {
  EXPECT_EQ(RedactTarget("/v1/x?token=abc&index=7&X-Amz-Signature=def"),
            "/v1/x?token=REDACTED&index=7&X-Amz-Signature=REDACTED");
}

TEST(RedactTarget, a_continue_token_is_hidden) {
  EXPECT_EQ(RedactTarget("/api?limit=100&continue=eyJ2Ijoi"), "/api?limit=100&continue=REDACTED");
}

TEST(RedactTarget, a_bare_word_might_be_the_secret_itself) {
  EXPECT_EQ(RedactTarget("/v1/x?s3cr3t"), "/v1/x?REDACTED");
  EXPECT_EQ(RedactTarget("/v1/x?index"), "/v1/x?index");
}

TEST(RedactTarget, odd_queries_do_not_confuse_it) {
  EXPECT_EQ(RedactTarget("/v1/x?"), "/v1/x?");
  EXPECT_EQ(RedactTarget("/v1/x?=secret"), "/v1/x?=REDACTED");
  EXPECT_EQ(RedactTarget("/v1/x?index=1&token=a=b&c"), "/v1/x?index=1&token=REDACTED&REDACTED");
  // Keys are compared literally: an escaped key, or one in another case, is unknown.
  EXPECT_EQ(RedactTarget("/v1/x?Index=1&inde%78=1"), "/v1/x?Index=REDACTED&inde%78=REDACTED");
}

TEST(CleanErrorText, P3_passwords_in_URLs_disappear) {
  EXPECT_EQ(CleanErrorText("Unsupported proxy syntax in 'http://user:secret@proxy:3128'"),
            "Unsupported proxy syntax in 'http://REDACTED@proxy:3128'");
  EXPECT_EQ(CleanErrorText("user:secret@proxy"), "REDACTED@proxy");
  // An '@' in the password itself.
  EXPECT_EQ(CleanErrorText("\"http://u:se@cret@proxy\""), "\"http://REDACTED@proxy\"");
}

TEST(CleanErrorText, P4_the_phrases_that_restart_policies_are_put_differently) {
  EXPECT_EQ(CleanErrorText("connect: Connection refused"), "connect: connection rejected");
  EXPECT_EQ(CleanErrorText("SSL routines::unexpected eof while reading, EOF"),
            "SSL routines::unexpected end of stream while reading, end of stream");
}

TEST(CleanErrorText, names_that_hold_such_a_phrase_stay) {
  EXPECT_EQ(CleanErrorText("Could not resolve host: geofence.test, geofence"),
            "Could not resolve host: geofence.test, geofence");
  EXPECT_EQ(CleanErrorText("eofs eof"), "eofs end of stream");
}

TEST(CleanErrorText, other_texts_stay) {
  EXPECT_EQ(CleanErrorText("Could not resolve host: nomad.test"),
            "Could not resolve host: nomad.test");
  EXPECT_EQ(CleanErrorText(""), "");
}

}  // namespace
}  // namespace nomad_harvester::http
