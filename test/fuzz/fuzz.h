// SPDX-License-Identifier: Apache-2.0
// What the fuzz targets share: how an input is cut up, and how a broken promise ends the program.
#ifndef NOMAD_HARVESTER_TEST_FUZZ_FUZZ_H_
#define NOMAD_HARVESTER_TEST_FUZZ_FUZZ_H_

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace nomad_harvester::fuzz {

// libFuzzer keeps the input of a program that aborts.
inline void Require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken: %s\n", what);
  std::abort();
}

inline std::string_view Text(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};  // NOLINT(*-reinterpret-cast)
}

// Secrets of the corpus begin with this, so that no other part of an input or of a message equals
// them.
inline constexpr std::string_view kSecretPrefix = "s3cr3t-";

inline void RequireHidden(std::string_view secret, std::string_view message) {
  if (!secret.starts_with(kSecretPrefix) || secret.size() == kSecretPrefix.size()) return;
  Require(message.find(secret) == std::string_view::npos, "a message holds no secret");
}

}  // namespace nomad_harvester::fuzz

#endif  // NOMAD_HARVESTER_TEST_FUZZ_FUZZ_H_
