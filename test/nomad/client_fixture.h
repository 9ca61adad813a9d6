// SPDX-License-Identifier: Apache-2.0
#ifndef NOMAD_HARVESTER_TEST_NOMAD_CLIENT_FIXTURE_H_
#define NOMAD_HARVESTER_TEST_NOMAD_CLIENT_FIXTURE_H_

#include "nomad_harvester/nomad/client.h"

#include "support/client_fixture.h"

namespace nomad_harvester::nomad {

class ClientFixture : public support::ClientFixture {
 protected:
  NomadClient client_{transport_, {}};
};

}  // namespace nomad_harvester::nomad

#endif  // NOMAD_HARVESTER_TEST_NOMAD_CLIENT_FIXTURE_H_
