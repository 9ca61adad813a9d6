// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/http/connection_parts.h"

#include <filesystem>
#include <string>

#include "nomad_harvester/base/encoding.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "http/test_certificates.h"
#include "support/scoped_environment.h"
#include "support/scoped_temp_dir.h"
#include "support/status_matchers.h"

namespace nomad_harvester::http {
namespace {

using absl::StatusCode;
using support::IsOk;
using support::IsOkAndHolds;
using support::ScopedTempDir;
using support::StatusIs;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const std::string& One() {
  static const std::string pem = TestCa("one").pem();
  return pem;
}
const std::string& Two() {
  static const std::string pem = TestCa("two").pem();
  return pem;
}

TEST(CertificateBlocks, are_found_between_comments_and_keys) {
  const std::string key = TestCa().Issue("DNS:x.test").key;
  EXPECT_THAT(CertificateBlocks("# one\n" + One() + "text\n" + key + Two() + "end"),
              ElementsAre(One(), Two()));
}

TEST(CertificateBlocks, none_in_other_texts) {
  EXPECT_THAT(CertificateBlocks(""), IsEmpty());
  EXPECT_THAT(CertificateBlocks("no PEM at all"), IsEmpty());
  EXPECT_THAT(CertificateBlocks(One().substr(0, One().size() / 2)), IsEmpty());
}

TEST(CertificateBlocks, one_that_is_not_base64_does_not_spoil_the_others) {
  const std::string broken = "-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----\n";
  const std::string empty = "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n";
  EXPECT_THAT(CertificateBlocks(broken + One() + empty), ElementsAre(One()));
}

TEST(LoadCasFrom, the_first_bundle_that_holds_a_certificate) {
  const ScopedTempDir dir;
  const std::string empty = dir.WriteFile("empty.pem", "nothing");
  const std::string one = dir.WriteFile("one.pem", One());
  const std::string two = dir.WriteFile("two.pem", Two());
  EXPECT_THAT(LoadCasFrom({"", "", {dir.Path("missing"), empty, one, two}}), IsOkAndHolds(One()));
}

TEST(LoadCasFrom, the_environments_file_and_directories_count_together) {
  const ScopedTempDir dir;
  const std::string one = dir.WriteFile("one.pem", One());
  dir.WriteFile("certs/two.crt", Two());
  EXPECT_THAT(LoadCasFrom({one, dir.Path("missing") + ":" + dir.Path("certs"), {}}),
              IsOkAndHolds(One() + Two()));
}

TEST(LoadCasFrom, nothing_is_added_to_what_the_environment_names) {
  const ScopedTempDir dir;
  const std::string one = dir.WriteFile("one.pem", One());
  EXPECT_THAT(
      LoadCasFrom({dir.Path("missing"), "", {one}}),
      StatusIs(StatusCode::kNotFound, AllOf(HasSubstr("SSL_CERT_FILE=" + dir.Path("missing")),
                                            Not(HasSubstr("one.pem")))));
}

TEST(LoadCasFrom, the_error_names_all_that_was_tried) {
  const ScopedTempDir dir;
  EXPECT_THAT(
      LoadCasFrom({"", "", {dir.Path("a"), dir.Path("b")}}),
      StatusIs(StatusCode::kNotFound, AllOf(HasSubstr(dir.Path("a")), HasSubstr(dir.Path("b")))));
}

TEST(LoadSystemCas, uses_the_paths_of_the_environment) {
  const ScopedTempDir dir;
  support::ScopedEnvironment environment("SSL_CERT_FILE", dir.WriteFile("one.pem", One()));
  environment.Unset("SSL_CERT_DIR");
  EXPECT_THAT(LoadSystemCas(), IsOkAndHolds(One()));
  environment.Unset("SSL_CERT_FILE");
  environment.Set("SSL_CERT_DIR", dir.path());
  EXPECT_THAT(LoadSystemCas(), IsOkAndHolds(One()));
}

TEST(LoadCaDirectory, reads_every_PEM_file_regardless_of_its_name_and_each_certificate_once) {
  const ScopedTempDir dir;
  dir.WriteFile("b.txt", Two());
  dir.WriteFile("a", One());
  dir.WriteFile("c.pem", One() + Two());
  dir.WriteFile("README", "no certificate");
  std::filesystem::create_symlink(dir.Path("a"), dir.Path("5ed36f99.0"));
  EXPECT_THAT(LoadCaDirectory(dir.path()), IsOkAndHolds(AllOf(HasSubstr(One()), HasSubstr(Two()))));
  EXPECT_EQ(LoadCaDirectory(dir.path())->size(), One().size() + Two().size());
}

TEST(LoadCaDirectory, missing_or_without_a_certificate_is_an_error_with_its_path) {
  const ScopedTempDir dir;
  EXPECT_THAT(LoadCaDirectory(dir.Path("missing")),
              StatusIs(StatusCode::kNotFound, HasSubstr(dir.Path("missing"))));
  EXPECT_THAT(LoadCaDirectory(dir.path()),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr(dir.path())));
  EXPECT_THAT(LoadCaDirectory(dir.WriteFile("file", One())),
              StatusIs(StatusCode::kInvalidArgument));
}

TEST(LoadCaDirectory, P2_a_device_or_a_huge_file_in_it_is_passed_over) {
  const ScopedTempDir dir;
  dir.WriteFile("one", One());
  std::filesystem::create_symlink("/dev/zero", dir.Path("zero"));
  dir.WriteFile("huge", std::string(9 * 1024 * 1024, 'a'));
  EXPECT_THAT(LoadCaDirectory(dir.path()), IsOkAndHolds(One()));
}

std::string KeyBlock(const std::string& kind) {
  return "-----BEGIN " + kind + "-----\nc2VzYW1l\n-----END " + kind + "-----\n";
}

TEST(Pem, a_certificate_is_known_by_its_block) {
  EXPECT_THAT(DecodePem(base::Base64Encode(One()), PemKind::kCertificate), IsOkAndHolds(One()));
  const std::string bundle = "# CAs\n" + Two() + One();
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
  EXPECT_THAT(DecodePem(base::Base64Encode(KeyBlock("PRIVATE KEY")), PemKind::kCertificate),
              StatusIs(StatusCode::kInvalidArgument, "it holds no PEM certificate"));
  EXPECT_THAT(DecodePem(base::Base64Encode(One()), PemKind::kPrivateKey),
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
  for (const char c : base::Base64Encode(One())) wrapped += std::string(1, c) + "\n ";
  EXPECT_THAT(DecodePem(wrapped, PemKind::kCertificate), IsOkAndHolds(One()));
}

TEST(Pem, a_file_is_named_with_what_is_wrong_with_it) {
  const ScopedTempDir dir;
  EXPECT_THAT(ReadPemFile(dir.WriteFile("ca.pem", Two()), PemKind::kCertificate),
              IsOkAndHolds(Two()));
  EXPECT_THAT(ReadPemFile(dir.Path("missing"), PemKind::kCertificate),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr(dir.Path("missing"))));
  EXPECT_THAT(
      ReadPemFile(dir.WriteFile("der", "\x30\x82sesame"), PemKind::kCertificate),
      StatusIs(StatusCode::kInvalidArgument, dir.Path("der") + " holds no PEM certificate"));
  EXPECT_THAT(
      ReadPemFile(dir.WriteFile("key", Two()), PemKind::kPrivateKey),
      StatusIs(StatusCode::kInvalidArgument, dir.Path("key") + " holds no PEM private key"));
}

TEST(Pem, P2_a_device_a_directory_and_a_huge_file_are_refused) {
  const ScopedTempDir dir;
  const std::string huge = dir.WriteFile("huge", std::string(2'000'000, 'x') + Two());
  for (const std::string& path : {std::string("/dev/zero"), dir.path(), huge}) {
    EXPECT_THAT(ReadPemFile(path, PemKind::kCertificate),
                StatusIs(StatusCode::kInvalidArgument, HasSubstr(path)))
        << path;
  }
}

TEST(Problems, are_one_line_each_with_its_key) {
  Problems problems;
  EXPECT_TRUE(problems.empty());
  EXPECT_THAT(problems.ToStatus(), IsOk());
  EXPECT_EQ(problems.ValueOr<std::string>(std::string("value"), "a"), "value");
  EXPECT_EQ(problems.ValueOr<std::string>(base::NotFound("no such file"), "b"), "");
  problems.Add("c", "required");
  EXPECT_FALSE(problems.empty());
  EXPECT_THAT(problems.ToStatus(),
              StatusIs(StatusCode::kInvalidArgument, "b: no such file\nc: required"));
}

}  // namespace
}  // namespace nomad_harvester::http
