// SPDX-License-Identifier: Apache-2.0
#include "http/test_certificates.h"

#include <atomic>
#include <functional>
#include <stdexcept>

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

namespace nomad_harvester::http {
namespace {

void RequireSsl(bool ok, const char* what) {
  if (!ok) throw std::runtime_error(std::string("OpenSSL: ") + what);
}

std::string ToPem(const std::function<int(BIO*)>& write) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> bio(BIO_new(BIO_s_mem()), &BIO_free);
  RequireSsl(bio != nullptr && write(bio.get()) == 1, "PEM");
  std::string pem(BIO_ctrl_pending(bio.get()), '\0');
  RequireSsl(
      BIO_read(bio.get(), pem.data(), static_cast<int>(pem.size())) == static_cast<int>(pem.size()),
      "BIO_read");
  return pem;
}

std::string CertificatePem(X509* certificate) {
  return ToPem([certificate](BIO* bio) { return PEM_write_bio_X509(bio, certificate); });
}

void AddExtension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str());
  RequireSsl(extension != nullptr && X509_add_ext(certificate, extension, -1) == 1, value.c_str());
  X509_EXTENSION_free(extension);
}

EVP_PKEY* NewKey() {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  RequireSsl(key != nullptr, "EVP_EC_gen");
  return key;
}

}  // namespace

TestCa::Certificate TestCa::Make(const std::string& name, EVP_PKEY* key, bool expired) {
  static std::atomic<long> serial = 1;
  constexpr long kDay = 24L * 60 * 60;
  Certificate certificate(X509_new());
  X509* const x509 = certificate.get();
  RequireSsl(x509 != nullptr, "X509_new");
  X509_set_version(x509, X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(x509), serial++);
  X509_gmtime_adj(X509_getm_notBefore(x509), -2 * kDay);
  X509_gmtime_adj(X509_getm_notAfter(x509), expired ? -kDay : kDay);
  X509_set_pubkey(x509, key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(x509), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  return certificate;
}

TestCa::TestCa(const std::string& name) : key_(NewKey()) {
  certificate_ = Make(name, key_.get(), false);
  X509* const x509 = certificate_.get();
  X509_set_issuer_name(x509, X509_get_subject_name(x509));
  AddExtension(x509, x509, NID_basic_constraints, "critical,CA:TRUE");
  AddExtension(x509, x509, NID_key_usage, "critical,keyCertSign,cRLSign");
  RequireSsl(X509_sign(x509, key_.get(), EVP_sha256()) > 0, "X509_sign");
  pem_ = CertificatePem(x509);
}

PemPair TestCa::Issue(const std::string& alternative_names, bool expired) const {
  const Key key(NewKey());
  const Certificate certificate = Make("127.0.0.1", key.get(), expired);
  X509* const x509 = certificate.get();
  X509_set_issuer_name(x509, X509_get_subject_name(certificate_.get()));
  if (!alternative_names.empty()) {
    AddExtension(x509, certificate_.get(), NID_subject_alt_name, alternative_names);
  }
  RequireSsl(X509_sign(x509, key_.get(), EVP_sha256()) > 0, "X509_sign");
  PemPair pair;
  pair.certificate = CertificatePem(x509);
  pair.key = ToPem([&key](BIO* bio) {
    return PEM_write_bio_PKCS8PrivateKey(bio, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  });
  return pair;
}

}  // namespace nomad_harvester::http
