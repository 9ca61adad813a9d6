// SPDX-License-Identifier: Apache-2.0
#ifndef NOMAD_HARVESTER_TEST_KUBE_CLIENT_FIXTURE_H_
#define NOMAD_HARVESTER_TEST_KUBE_CLIENT_FIXTURE_H_

#include "nomad_harvester/kube/client.h"

#include "kube/replies.h"
#include "support/client_fixture.h"
#include "support/status_matchers.h"

namespace nomad_harvester::kube {

class ClientFixture : public support::ClientFixture {
 protected:
  KubeClient client_{transport_};
};

}  // namespace nomad_harvester::kube

#endif  // NOMAD_HARVESTER_TEST_KUBE_CLIENT_FIXTURE_H_
