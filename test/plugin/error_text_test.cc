// SPDX-License-Identifier: Apache-2.0
#include <random>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/base/json.h"

#include "grpc_status.h"

namespace nomad_harvester::plugin {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Scrub, P4_words_stay_readable) {
  EXPECT_EQ(Scrub("unexpected EOF"), "unexpected end of file");
  EXPECT_EQ(Scrub("read: EOF."), "read: end of file.");
  EXPECT_EQ(Scrub("connect: connection refused"), "connect: connection was refused");
}

TEST(Scrub, P4_names_stay_recognisable) {
  EXPECT_EQ(Scrub("pool GEOFENCE is full"), "pool GEO-FENCE is full");
  EXPECT_EQ(Scrub("io.EOF"), "io.EO-F");
  EXPECT_EQ(Scrub("EOF-1"), "EO-F-1");
  EXPECT_EQ(Scrub("EOF"), "EO-F");
  EXPECT_EQ(Scrub("(EOF), \"EOF\""), "(EO-F), \"EO-F\"");
  EXPECT_EQ(Scrub("EOF.txt"), "EO-F.txt");
  EXPECT_EQ(Scrub("/mnt/EOF/x"), "/mnt/EO-F/x");
  EXPECT_EQ(Scrub("\xc3\xbc"
                  "EOF"),
            "\xc3\xbc"
            "EO-F");
}

TEST(Scrub, LeavesEverythingElseAsItIs) {
  for (const char* text : {"", "eof", "Eof", "E O F", "EO-F", "Connection refused",
                           "connection  refused", "connection reset", "EO", "connection"}) {
    EXPECT_EQ(Scrub(text), text);
  }
}

TEST(Scrub, P4_no_mixture_of_the_pieces_survives) {
  const char* const pieces[] = {"E",
                                "O",
                                "F",
                                "EO",
                                "OF",
                                "EOF",
                                "connection",
                                " refused",
                                " ",
                                "-",
                                ".",
                                "\xc3",
                                "connection refused",
                                "end of file"};
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    std::string text;
    for (std::size_t n = random() % 12; n > 0; --n) text += pieces[random() % std::size(pieces)];
    for (const std::string& result : {Scrub(text), MakeErrorText(text).text}) {
      ASSERT_THAT(result, Not(HasSubstr("EOF"))) << text;
      ASSERT_THAT(result, Not(HasSubstr("connection refused"))) << text;
    }
    ASSERT_EQ(Scrub(Scrub(text)), Scrub(text)) << text;
  }
}

TEST(EncodedSize, CountsThreeForWhatIsEscaped) {
  EXPECT_EQ(EncodedSize("plain text ~"), 12U);
  EXPECT_EQ(EncodedSize("100%"), 6U);
  EXPECT_EQ(EncodedSize("a\nb"), 5U);
  EXPECT_EQ(EncodedSize("\xc3\xbc\x7f"), 9U);
}

TEST(MakeErrorText, KeepsWhatFits) {
  const std::string text(kMaxEncodedMessage, 'x');
  EXPECT_EQ(MakeErrorText(text).text, text);
  EXPECT_FALSE(MakeErrorText(text).shortened);
  EXPECT_EQ(MakeErrorText("").text, "");
}

TEST(MakeErrorText, ShortensToWhatAHeaderCarries) {
  for (const std::string& unit : {std::string("x"), std::string("\n"), std::string("\xc3\xbc"),
                                  std::string("\xf0\x9f\x98\x80"), std::string("ab%")}) {
    std::string text;
    for (int i = 0; i < 10000; ++i) text += unit;
    const ErrorText result = MakeErrorText(text);
    EXPECT_TRUE(result.shortened);
    EXPECT_LE(EncodedSize(result.text), kMaxEncodedMessage);
    EXPECT_GT(EncodedSize(result.text), kMaxEncodedMessage - 16);
    EXPECT_EQ(base::ToValidUtf8(result.text), result.text) << "a character was cut";
    EXPECT_THAT(result.text, HasSubstr("shortened"));
    EXPECT_EQ(result.text.substr(0, 1000), text.substr(0, 1000));
  }
}

TEST(MakeErrorText, MakesValidUtf8) {
  EXPECT_EQ(MakeErrorText("a\xff"
                          "b")
                .text,
            "a\xef\xbf\xbd"
            "b");
}

}  // namespace
}  // namespace nomad_harvester::plugin
