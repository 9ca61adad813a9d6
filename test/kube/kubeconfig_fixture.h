// SPDX-License-Identifier: Apache-2.0
// Kubeconfigs for tests.
#ifndef NOMAD_HARVESTER_TEST_KUBE_KUBECONFIG_FIXTURE_H_
#define NOMAD_HARVESTER_TEST_KUBE_KUBECONFIG_FIXTURE_H_

#include <string>

#include "nomad_harvester/base/encoding.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/kube/connection.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "support/scoped_environment.h"
#include "support/scoped_temp_dir.h"
#include "support/status_matchers.h"

namespace nomad_harvester::kube {

inline constexpr char kCaPem[] = "-----BEGIN CERTIFICATE-----\nQ0E=\n-----END CERTIFICATE-----\n";
inline constexpr char kCertPem[] =
    "-----BEGIN CERTIFICATE-----\nQ0VSVA==\n-----END CERTIFICATE-----\n";
inline constexpr char kKeyPem[] =
    "-----BEGIN PRIVATE KEY-----\nc2VzYW1l\n-----END PRIVATE KEY-----\n";

// One context, "main", whose cluster "c" and user "u" have these members (flow maps).
inline std::string Kubeconfig(const std::string& cluster, const std::string& user) {
  return "apiVersion: v1\nkind: Config\ncurrent-context: main\n"
         "contexts: [{name: main, context: {cluster: c, user: u}}]\n"
         "clusters: [{name: c, cluster: " +
         cluster + "}]\nusers: [{name: u, user: " + user + "}]\n";
}

class ConnectionFixture : public testing::Test {
 protected:
  ConnectionFixture() {
    // Excludes the system's CAs from the test.
    environment_.Unset("SSL_CERT_DIR");
    environment_.Set("SSL_CERT_FILE", dir_.WriteFile("system-cas.pem", kSystemCas));
  }

  void UseKubeconfig(const std::string& text) {
    options_.kubeconfig_path = dir_.WriteFile("kubeconfig", text);
  }
  Connection Resolved() const {
    auto connection = ResolveConnection(options_);
    EXPECT_TRUE(connection.ok()) << connection.status();
    return connection.ok() ? *std::move(connection) : Connection{};
  }
  // One line for each problem.
  std::string Problems() const {
    const auto connection = ResolveConnection(options_);
    EXPECT_EQ(connection.status().code(), absl::StatusCode::kInvalidArgument)
        << connection.status();
    return base::Message(connection.status());
  }
  static std::string TokenOf(const Connection& connection) {
    if (connection.token == nullptr) return "";
    const auto token = connection.token->Token();
    return token.ok() ? token->Reveal() : "error: " + base::Message(token.status());
  }

  static constexpr char kSystemCas[] =
      "-----BEGIN CERTIFICATE-----\nU1lT\n-----END CERTIFICATE-----\n";
  const support::ScopedTempDir dir_;
  support::ScopedEnvironment environment_;
  config::HarvesterSettings options_;
};

}  // namespace nomad_harvester::kube

#endif  // NOMAD_HARVESTER_TEST_KUBE_KUBECONFIG_FIXTURE_H_
