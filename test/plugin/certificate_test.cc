// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/base/encoding.h"
#include "nomad_harvester/base/status.h"

#include "handshake.h"
#include "openssl/bio.h"
#include "openssl/ec.h"
#include "openssl/evp.h"
#include "openssl/pem.h"
#include "openssl/x509.h"
#include "openssl/x509v3.h"

namespace nomad_harvester::plugin {
namespace {

using X509Pointer = std::unique_ptr<X509, decltype(&X509_free)>;
using KeyPointer = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

X509Pointer ParsePem(const std::string& pem) {
  BIO* const bio = BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
  X509Pointer result(PEM_read_bio_X509(bio, nullptr, nullptr, nullptr), X509_free);
  BIO_free(bio);
  return result;
}

class OneTime : public ::testing::Test {
 protected:
  void SetUp() override {
    const absl::StatusOr<OneTimeCertificate> made = MakeOneTimeCertificate();
    ASSERT_TRUE(made.ok()) << made.status();
    made_ = *made;
    parsed_ = ParsePem(made_.certificate_pem);
    ASSERT_NE(parsed_, nullptr);
  }
  OneTimeCertificate made_;
  X509Pointer parsed_{nullptr, X509_free};
};

TEST_F(OneTime, IsForLocalhost) {
  EXPECT_EQ(X509_check_host(parsed_.get(), "localhost", 0, 0, nullptr), 1);
  EXPECT_EQ(X509_check_host(parsed_.get(), "example.org", 0, 0, nullptr), 0);
}

TEST_F(OneTime, HasTheKeyThatSignedItOverP256) {
  BIO* const bio = BIO_new_mem_buf(made_.key_pem.data(), static_cast<int>(made_.key_pem.size()));
  const KeyPointer key(PEM_read_bio_PrivateKey(bio, nullptr, nullptr, nullptr), EVP_PKEY_free);
  BIO_free(bio);
  ASSERT_NE(key, nullptr);
  EXPECT_EQ(EVP_PKEY_get_bits(key.get()), 256);
  EXPECT_EQ(X509_check_private_key(parsed_.get(), key.get()), 1);
  EXPECT_EQ(X509_verify(parsed_.get(), key.get()), 1);
}

TEST_F(OneTime, ServesBothSidesAndIsItsOwnAuthority) {
  EXPECT_EQ(X509_check_purpose(parsed_.get(), X509_PURPOSE_SSL_SERVER, 0), 1);
  EXPECT_EQ(X509_check_purpose(parsed_.get(), X509_PURPOSE_SSL_CLIENT, 0), 1);
  EXPECT_EQ(X509_check_ca(parsed_.get()), 1);
}

TEST_F(OneTime, IsValidNowAndForYears) {
  EXPECT_LT(X509_cmp_current_time(X509_get0_notBefore(parsed_.get())), 0);
  int days = 0;
  int rest = 0;
  ASSERT_EQ(ASN1_TIME_diff(&days, &rest, nullptr, X509_get0_notAfter(parsed_.get())), 1);
  EXPECT_GT(days, 29 * 365);
}

TEST_F(OneTime, HandshakeFieldIsTheCertificateWithoutPadding) {
  EXPECT_EQ(made_.handshake_field.find_first_of("=\n|"), std::string::npos);
  const absl::StatusOr<std::string> der = base::Base64Decode(made_.handshake_field);
  ASSERT_TRUE(der.ok());
  const auto* data = reinterpret_cast<const unsigned char*>(der->data());
  const X509Pointer from_der(d2i_X509(nullptr, &data, static_cast<long>(der->size())), X509_free);
  ASSERT_NE(from_der, nullptr);
  EXPECT_EQ(X509_cmp(from_der.get(), parsed_.get()), 0);
}

TEST_F(OneTime, IsAnotherOneEachTime) {
  const absl::StatusOr<OneTimeCertificate> other = MakeOneTimeCertificate();
  ASSERT_TRUE(other.ok());
  EXPECT_NE(other->key_pem, made_.key_pem);
  EXPECT_NE(other->certificate_pem, made_.certificate_pem);
}

TEST_F(OneTime, PassesAsAClientCertificate) {
  EXPECT_TRUE(CheckClientCertificate(made_.certificate_pem).ok());
}

TEST_F(OneTime, AnythingElseIsNoClientCertificate) {
  for (const std::string& pem :
       {std::string(), std::string("garbage"), made_.key_pem, made_.certificate_pem.substr(0, 200),
        made_.certificate_pem + made_.certificate_pem,
        made_.certificate_pem + made_.certificate_pem.substr(0, 200), made_.handshake_field}) {
    const absl::Status status = CheckClientCertificate(pem);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << pem;
    EXPECT_THAT(base::Message(status), ::testing::HasSubstr("PLUGIN_CLIENT_CERT"));
  }
}

}  // namespace
}  // namespace nomad_harvester::plugin
