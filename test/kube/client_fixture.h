// SPDX-License-Identifier: Apache-2.0
#ifndef NOMAD_HARVESTER_TEST_KUBE_CLIENT_FIXTURE_H_
#define NOMAD_HARVESTER_TEST_KUBE_CLIENT_FIXTURE_H_

#include <memory>
#include <string>

#include "nomad_harvester/kube/client.h"
#include "nomad_harvester/runtime/context.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kube/replies.h"
#include "support/fake_clock.h"
#include "support/scripted_transport.h"
#include "support/status_matchers.h"

namespace nomad_harvester::kube {

class ClientFixture : public testing::Test {
 protected:
  void TearDown() override { EXPECT_TRUE(transport_->done()) << "a reply was never asked for"; }

  http::HttpRequest OnlyRequest() const {
    const auto requests = transport_->requests();
    EXPECT_EQ(requests.size(), 1U);
    return requests.empty() ? http::HttpRequest() : requests.front();
  }
  Json Body() const { return Json::parse(OnlyRequest().body, nullptr, /*allow_exceptions=*/false); }

  support::FakeClock clock_;
  runtime::Context context_ = runtime::Context::Background(clock_);
  std::shared_ptr<support::ScriptedTransport> transport_ =
      std::make_shared<support::ScriptedTransport>();
  KubeClient client_{transport_};
};

}  // namespace nomad_harvester::kube

#endif  // NOMAD_HARVESTER_TEST_KUBE_CLIENT_FIXTURE_H_
