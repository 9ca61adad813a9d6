// SPDX-License-Identifier: Apache-2.0
#ifndef NOMAD_HARVESTER_TEST_NOMAD_CLIENT_FIXTURE_H_
#define NOMAD_HARVESTER_TEST_NOMAD_CLIENT_FIXTURE_H_

#include <memory>
#include <string>

#include "nomad_harvester/nomad/client.h"
#include "nomad_harvester/runtime/clock.h"
#include "nomad_harvester/runtime/context.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "support/scripted_transport.h"

namespace nomad_harvester::nomad {

class ClientFixture : public testing::Test {
 protected:
  void TearDown() override { EXPECT_TRUE(transport_->done()) << "a reply was never asked for"; }

  http::HttpRequest OnlyRequest() const {
    const auto requests = transport_->requests();
    EXPECT_EQ(requests.size(), 1U);
    return requests.empty() ? http::HttpRequest() : requests.front();
  }

  std::unique_ptr<runtime::Clock> clock_ = runtime::MakeSystemClock();
  runtime::Context context_ = runtime::Context::Background(*clock_);
  std::shared_ptr<support::ScriptedTransport> transport_ =
      std::make_shared<support::ScriptedTransport>();
  NomadClient client_{transport_, {}};
};

}  // namespace nomad_harvester::nomad

#endif  // NOMAD_HARVESTER_TEST_NOMAD_CLIENT_FIXTURE_H_
