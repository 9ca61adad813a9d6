// SPDX-License-Identifier: Apache-2.0
// Certificates made while the test runs.
#ifndef NOMAD_HARVESTER_TEST_HTTP_TEST_CERTIFICATES_H_
#define NOMAD_HARVESTER_TEST_HTTP_TEST_CERTIFICATES_H_

#include <memory>
#include <string>

#include <openssl/evp.h>
#include <openssl/x509.h>

namespace nomad_harvester::http {

struct PemPair {
  std::string certificate;
  std::string key;
};

class TestCa {
 public:
  explicit TestCa(const std::string& name = "test CA");

  // The CA's own certificate as PEM.
  const std::string& pem() const { return pem_; }
  // A certificate for names in OpenSSL's notation: "DNS:vip.test,IP:127.0.0.1"; empty: without
  // subjectAltName. Its common name is 127.0.0.1.
  PemPair Issue(const std::string& alternative_names, bool expired = false) const;

 private:
  struct Free {
    void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
    void operator()(X509* certificate) const { X509_free(certificate); }
  };
  using Key = std::unique_ptr<EVP_PKEY, Free>;
  using Certificate = std::unique_ptr<X509, Free>;
  static Certificate Make(const std::string& name, EVP_PKEY* key, bool expired);

  Key key_;
  Certificate certificate_;
  std::string pem_;
};

}  // namespace nomad_harvester::http

#endif  // NOMAD_HARVESTER_TEST_HTTP_TEST_CERTIFICATES_H_
