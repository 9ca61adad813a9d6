// SPDX-License-Identifier: Apache-2.0
// Reads PEM from files and kubeconfigs.
#ifndef NOMAD_HARVESTER_SRC_KUBE_PEM_H_
#define NOMAD_HARVESTER_SRC_KUBE_PEM_H_

#include <string>

#include "absl/status/statusor.h"

namespace nomad_harvester::kube {

enum class PemKind { kCertificate, kPrivateKey };

// INVALID_ARGUMENT, with a text for the operator that never contains the file's content: no such
// file, not readable, no PEM block of that kind in it, an encrypted key.
absl::StatusOr<std::string> ReadPemFile(const std::string& path, PemKind kind);
// The same for a kubeconfig's *-data member.
absl::StatusOr<std::string> DecodePem(const std::string& base64, PemKind kind);

}  // namespace nomad_harvester::kube

#endif  // NOMAD_HARVESTER_SRC_KUBE_PEM_H_
