// SPDX-License-Identifier: Apache-2.0
// CA certificates from files. The public functions are in nomad_harvester/http/curl_transport.h.
#ifndef NOMAD_HARVESTER_SRC_HTTP_CA_CERTIFICATES_H_
#define NOMAD_HARVESTER_SRC_HTTP_CA_CERTIFICATES_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace nomad_harvester::http {

// The certificate blocks of a PEM text, without comments, keys and blocks that are not base64.
std::vector<std::string> CertificateBlocks(std::string_view pem);

struct CaPlaces {
  std::string file;         // SSL_CERT_FILE
  std::string directories;  // SSL_CERT_DIR, separated by colons
  std::vector<std::string> bundles;
};
// The certificates of the paths that the environment names, if any; else those of the first bundle
// that holds a certificate. NOT_FOUND names the paths tried.
absl::StatusOr<std::string> LoadCasFrom(const CaPlaces& places);

}  // namespace nomad_harvester::http

#endif  // NOMAD_HARVESTER_SRC_HTTP_CA_CERTIFICATES_H_
