// SPDX-License-Identifier: Apache-2.0
// The host's certificate, PLUGIN_CLIENT_CERT.
#include <string>

#include "fuzz/fuzz.h"
#include "handshake.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using nomad_harvester::fuzz::Require;
  const std::string pem(nomad_harvester::fuzz::Text(data, size));
  const absl::Status once = nomad_harvester::plugin::CheckClientCertificate(pem);
  // "Exactly one": the same text twice has none or two.
  const absl::Status twice = nomad_harvester::plugin::CheckClientCertificate(pem + "\n" + pem);
  Require(!once.ok() || !twice.ok(), "two certificates are refused");
  return 0;
}
