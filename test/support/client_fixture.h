// SPDX-License-Identifier: Apache-2.0
#ifndef NOMAD_HARVESTER_TEST_SUPPORT_CLIENT_FIXTURE_H_
#define NOMAD_HARVESTER_TEST_SUPPORT_CLIENT_FIXTURE_H_

#include <memory>

#include "nomad_harvester/runtime/context.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "support/fake_clock.h"
#include "support/scripted_transport.h"

namespace nomad_harvester::support {

// For a client whose server replies from a script.
class ClientFixture : public testing::Test {
 protected:
  void TearDown() override { EXPECT_TRUE(transport_->done()) << "a reply was never asked for"; }

  http::HttpRequest OnlyRequest() const {
    const auto requests = transport_->requests();
    EXPECT_EQ(requests.size(), 1U);
    return requests.empty() ? http::HttpRequest() : requests.front();
  }
  nlohmann::json Body() const {
    return nlohmann::json::parse(OnlyRequest().body, nullptr, /*allow_exceptions=*/false);
  }

  FakeClock clock_;
  runtime::Context context_ = runtime::Context::Background(clock_);
  std::shared_ptr<ScriptedTransport> transport_ = std::make_shared<ScriptedTransport>();
};

}  // namespace nomad_harvester::support

#endif  // NOMAD_HARVESTER_TEST_SUPPORT_CLIENT_FIXTURE_H_
