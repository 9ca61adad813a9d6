// SPDX-License-Identifier: Apache-2.0
#include "pem.h"

#include <string>

#include "nomad_harvester/base/encoding.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kube/kubeconfig_fixture.h"

namespace nomad_harvester::kube {
namespace {

using absl::StatusCode;
using support::IsOkAndHolds;
using support::StatusIs;
using testing::HasSubstr;
using testing::Not;

std::string KeyBlock(const std::string& kind) {
  return "-----BEGIN " + kind + "-----\nc2VzYW1l\n-----END " + kind + "-----\n";
}

TEST(Pem, a_certificate_is_known_by_its_block) {
  EXPECT_THAT(DecodePem(base::Base64Encode(kCertPem), PemKind::kCertificate),
              IsOkAndHolds(kCertPem));
  const std::string bundle = "# CAs\n" + std::string(kCaPem) + kCertPem;
  EXPECT_THAT(DecodePem(base::Base64Encode(bundle), PemKind::kCertificate), IsOkAndHolds(bundle));
}

TEST(Pem, a_private_key_may_be_of_any_kind) {
  for (const char* kind : {"PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY"}) {
    EXPECT_THAT(DecodePem(base::Base64Encode(KeyBlock(kind)), PemKind::kPrivateKey),
                IsOkAndHolds(KeyBlock(kind)))
        << kind;
  }
}

TEST(Pem, a_key_in_place_of_a_certificate_and_the_reverse_are_refused) {
  EXPECT_THAT(DecodePem(base::Base64Encode(kKeyPem), PemKind::kCertificate),
              StatusIs(StatusCode::kInvalidArgument, "it holds no PEM certificate"));
  EXPECT_THAT(DecodePem(base::Base64Encode(kCertPem), PemKind::kPrivateKey),
              StatusIs(StatusCode::kInvalidArgument, "it holds no PEM private key"));
  EXPECT_THAT(DecodePem(base::Base64Encode("PRIVATE KEY-----"), PemKind::kPrivateKey),
              StatusIs(StatusCode::kInvalidArgument, "it holds no PEM private key"));
}

// OpenSSL would prompt for the passphrase on a terminal.
TEST(Pem, an_encrypted_key_is_refused_with_a_hint) {
  for (const std::string& key :
       {KeyBlock("ENCRYPTED PRIVATE KEY"),
        std::string("-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n"
                    "DEK-Info: AES-256-CBC,00\n\nc2VzYW1l\n-----END RSA PRIVATE KEY-----\n")}) {
    EXPECT_THAT(DecodePem(base::Base64Encode(key), PemKind::kPrivateKey),
                StatusIs(StatusCode::kInvalidArgument,
                         "it holds an encrypted key: give one without a passphrase"));
  }
}

TEST(Pem, what_is_not_base64_is_refused_and_never_quoted) {
  for (const char* text : {"sesame!", "c2VzYW1l=c", "-----BEGIN CERTIFICATE-----", "c"}) {
    EXPECT_THAT(DecodePem(text, PemKind::kCertificate),
                StatusIs(StatusCode::kInvalidArgument, "it is not base64"))
        << text;
  }
  EXPECT_THAT(DecodePem("c2VzYW1l", PemKind::kCertificate),
              StatusIs(StatusCode::kInvalidArgument, Not(HasSubstr("sesame"))));
}

TEST(Pem, base64_may_be_wrapped) {
  std::string wrapped;
  for (const char c : base::Base64Encode(kCertPem)) wrapped += std::string(1, c) + "\n ";
  EXPECT_THAT(DecodePem(wrapped, PemKind::kCertificate), IsOkAndHolds(kCertPem));
}

TEST(Pem, a_file_is_named_with_what_is_wrong_with_it) {
  const support::ScopedTempDir dir;
  EXPECT_THAT(ReadPemFile(dir.WriteFile("ca.pem", kCaPem), PemKind::kCertificate),
              IsOkAndHolds(kCaPem));
  EXPECT_THAT(ReadPemFile(dir.Path("missing"), PemKind::kCertificate),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr(dir.Path("missing"))));
  EXPECT_THAT(
      ReadPemFile(dir.WriteFile("der", "\x30\x82sesame"), PemKind::kCertificate),
      StatusIs(StatusCode::kInvalidArgument, dir.Path("der") + " holds no PEM certificate"));
  EXPECT_THAT(
      ReadPemFile(dir.WriteFile("key", kCaPem), PemKind::kPrivateKey),
      StatusIs(StatusCode::kInvalidArgument, dir.Path("key") + " holds no PEM private key"));
}

TEST(Pem, P2_a_device_a_directory_and_a_huge_file_are_refused) {
  const support::ScopedTempDir dir;
  const std::string huge = dir.WriteFile("huge", std::string(2'000'000, 'x') + kCaPem);
  for (const std::string& path : {std::string("/dev/zero"), dir.path(), huge}) {
    EXPECT_THAT(ReadPemFile(path, PemKind::kCertificate),
                StatusIs(StatusCode::kInvalidArgument, HasSubstr(path)))
        << path;
  }
}

}  // namespace
}  // namespace nomad_harvester::kube
