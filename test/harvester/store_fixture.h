// A VmStore of namespace "nomad" on a FakeApi.
#ifndef NOMAD_HARVESTER_TEST_HARVESTER_STORE_FIXTURE_H_
#define NOMAD_HARVESTER_TEST_HARVESTER_STORE_FIXTURE_H_

#include <memory>
#include <string>

#include "nomad_harvester/harvester/vm_store.h"
#include "nomad_harvester/kube/client.h"
#include "nomad_harvester/runtime/context.h"

#include "gtest/gtest.h"
#include "harvester/fake_api.h"
#include "support/fake_clock.h"

namespace nomad_harvester::harvester {

class StoreTest : public testing::Test {
 protected:
  static constexpr char kNs[] = "nomad";

  support::FakeClock clock_;
  runtime::Context context_ = runtime::Context::Background(clock_);
  std::shared_ptr<FakeApi> api_ = std::make_shared<FakeApi>();
  VmStore store_{std::make_shared<kube::KubeClient>(api_), kNs};
};

}  // namespace nomad_harvester::harvester

#endif  // NOMAD_HARVESTER_TEST_HARVESTER_STORE_FIXTURE_H_
