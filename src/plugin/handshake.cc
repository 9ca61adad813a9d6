// SPDX-License-Identifier: Apache-2.0
#include "handshake.h"

#include <memory>
#include <string>
#include <string_view>
#include <system_error>

#include "nomad_harvester/base/encoding.h"
#include "nomad_harvester/base/file.h"
#include "nomad_harvester/base/freed_by.h"
#include "nomad_harvester/base/status.h"

#include "openssl/bio.h"
#include "openssl/bn.h"
#include "openssl/err.h"
#include "openssl/evp.h"
#include "openssl/pem.h"
#include "openssl/x509.h"
#include "openssl/x509v3.h"

namespace nomad_harvester::plugin {
namespace {

using Key = std::unique_ptr<EVP_PKEY, base::FreedBy<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, base::FreedBy<X509_free>>;
using Bio = std::unique_ptr<BIO, base::FreedBy<BIO_free_all>>;
using Number = std::unique_ptr<BIGNUM, base::FreedBy<BN_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, base::FreedBy<X509_EXTENSION_free>>;

// Same as go-plugin's: the certificate must be valid while the process runs, possibly for years.
constexpr long kLifetimeHours = 262980;
constexpr int kClockToleranceSeconds = 30;

absl::Status OpenSslError(std::string_view what) {
  char reason[256] = "unknown reason";
  if (const unsigned long code = ERR_get_error(); code != 0) {
    ERR_error_string_n(code, reason, sizeof(reason));
  }
  ERR_clear_error();
  return base::Internal("cannot " + std::string(what) + ": " + reason);
}

std::string Content(BIO& bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(&bio, &data);
  return size > 0 ? std::string(data, static_cast<std::size_t>(size)) : std::string();
}

bool SetSerial(X509& certificate) {
  const Number number(BN_new());
  return number != nullptr &&
         BN_rand(number.get(), 127, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) == 1 &&
         BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(&certificate)) != nullptr;
}

bool SetLifetime(X509& certificate) {
  return X509_gmtime_adj(X509_getm_notBefore(&certificate), -kClockToleranceSeconds) != nullptr &&
         X509_gmtime_adj(X509_getm_notAfter(&certificate), kLifetimeHours * 3600) != nullptr;
}

bool SetName(X509& certificate) {
  X509_NAME* const name = X509_get_subject_name(&certificate);
  const auto* const host = reinterpret_cast<const unsigned char*>("localhost");
  return X509_NAME_add_entry_by_NID(name, NID_commonName, MBSTRING_ASC, host, -1, -1, 0) == 1 &&
         X509_set_issuer_name(&certificate, name) == 1;
}

bool AddExtension(X509& certificate, int nid, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, &certificate, &certificate, nullptr, nullptr, 0);
  const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value));
  return extension != nullptr && X509_add_ext(&certificate, extension.get(), -1) == 1;
}

// Same extensions as go-plugin's: the host uses the certificate as its own CA.
bool Fill(X509& certificate, EVP_PKEY& key) {
  return X509_set_version(&certificate, X509_VERSION_3) == 1 && SetSerial(certificate) &&
         SetLifetime(certificate) && X509_set_pubkey(&certificate, &key) == 1 &&
         SetName(certificate) &&
         AddExtension(certificate, NID_basic_constraints, "critical,CA:TRUE") &&
         AddExtension(certificate, NID_key_usage,
                      "critical,digitalSignature,keyAgreement,keyCertSign") &&
         AddExtension(certificate, NID_ext_key_usage, "serverAuth,clientAuth") &&
         AddExtension(certificate, NID_subject_alt_name, "DNS:localhost") &&
         X509_sign(&certificate, &key, EVP_sha256()) > 0;
}

}  // namespace

absl::StatusOr<OneTimeCertificate> MakeOneTimeCertificate() {
  const Key key(EVP_EC_gen("P-256"));
  if (key == nullptr) return OpenSslError("make a key");
  const Certificate certificate(X509_new());
  if (certificate == nullptr || !Fill(*certificate, *key)) {
    return OpenSslError("make a certificate");
  }
  const Bio certificate_pem(BIO_new(BIO_s_mem()));
  const Bio key_pem(BIO_new(BIO_s_mem()));
  const Bio der(BIO_new(BIO_s_mem()));
  if (certificate_pem == nullptr || key_pem == nullptr || der == nullptr ||
      PEM_write_bio_X509(certificate_pem.get(), certificate.get()) != 1 ||
      PEM_write_bio_PrivateKey(key_pem.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) !=
          1 ||
      i2d_X509_bio(der.get(), certificate.get()) != 1) {
    return OpenSslError("encode a certificate");
  }
  OneTimeCertificate result;
  result.certificate_pem = Content(*certificate_pem);
  result.key_pem = Content(*key_pem);
  result.handshake_field = base::Base64Encode(Content(*der));
  result.handshake_field.erase(result.handshake_field.find_last_not_of('=') + 1);
  return result;
}

absl::Status CheckClientCertificate(const std::string& pem) {
  const Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  if (bio == nullptr) return OpenSslError("read PLUGIN_CLIENT_CERT");
  const Certificate first(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  if (first == nullptr) {
    ERR_clear_error();
    return base::InvalidArgument("PLUGIN_CLIENT_CERT holds no certificate in PEM form");
  }
  // Also a second one that OpenSSL cannot read is one too many.
  constexpr std::string_view kBegin = "-----BEGIN";
  if (pem.find(kBegin) != pem.rfind(kBegin)) {
    return base::InvalidArgument("PLUGIN_CLIENT_CERT holds more than one certificate");
  }
  return absl::OkStatus();
}

std::string HandshakeLine(const Handshake& handshake) {
  std::string line = std::to_string(kCoreProtocol) + "|" + std::to_string(kPluginProtocol) +
                     "|unix|" + handshake.socket_path + "|grpc|" + handshake.certificate;
  // The broker's connections are not multiplexed over this socket: no C++ server supports that.
  if (handshake.answer_multiplexing) line += "|false";
  return line + "\n";
}

absl::Status WriteLine(int fd, std::string_view line) {
  const int error = base::WriteAll(fd, &line);
  if (error == 0) return absl::OkStatus();
  return base::Unavailable("cannot write the handshake: " + std::generic_category().message(error));
}

}  // namespace nomad_harvester::plugin
