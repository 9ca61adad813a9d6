// SPDX-License-Identifier: Apache-2.0
// What the tests of CurlTransport have in common.
#ifndef NOMAD_HARVESTER_TEST_HTTP_CURL_FIXTURE_H_
#define NOMAD_HARVESTER_TEST_HTTP_CURL_FIXTURE_H_

#include <memory>
#include <string>
#include <utility>

#include "nomad_harvester/http/curl_transport.h"
#include "nomad_harvester/runtime/clock.h"
#include "nomad_harvester/runtime/context.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "http/loopback_server.h"
#include "support/scoped_environment.h"
#include "support/status_matchers.h"

namespace nomad_harvester::http {

// Longer than any request on the loopback, shorter than a wait that is never woken.
constexpr auto kHangProtection = std::chrono::seconds(20);

class CurlTest : public testing::Test {
 protected:
  CurlTest() {
    // Tests must not use proxies from the environment.
    for (const char* name : {"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY",
                             "no_proxy", "NO_PROXY"}) {
      environment_.Unset(name);
    }
  }

  static std::shared_ptr<HttpTransport> Make(CurlOptions options) {
    auto transport = MakeCurlTransport(std::move(options));
    if (!transport.ok()) throw std::runtime_error(transport.status().ToString());
    return *std::move(transport);
  }
  static std::shared_ptr<HttpTransport> MakeFor(const std::string& url) {
    return Make({.base_url = url});
  }
  static HttpRequest Get(const std::string& target) {
    HttpRequest request;
    request.target = target;
    return request;
  }
  static HttpRequest Once(HttpRequest request) {
    request.idempotency = Idempotency::kOnce;
    return request;
  }

  support::ScopedEnvironment environment_;
  const std::unique_ptr<runtime::Clock> clock_ = runtime::MakeSystemClock();
  const runtime::Context context_ = runtime::Context::Background(*clock_);
};

}  // namespace nomad_harvester::http

#endif  // NOMAD_HARVESTER_TEST_HTTP_CURL_FIXTURE_H_
