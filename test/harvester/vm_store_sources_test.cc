// SPDX-License-Identifier: Apache-2.0
// Networks and keys.
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "harvester/store_fixture.h"
#include "support/status_matchers.h"

namespace nomad_harvester::harvester {
namespace {

using nlohmann::json;
using support::IsOk;
using support::IsOkAndHolds;
using support::StatusIs;
using testing::AllOf;
using testing::HasSubstr;
using testing::SizeIs;

class VmStoreSources : public StoreTest {
 protected:
  void PutKey(const json& spec) {
    Put(kube::kKeyPairs, "keys", {{"metadata", {{"name", "ops"}}}, {"spec", spec}});
  }
};

TEST_F(VmStoreSources, C2_a_network_has_to_be_there) {
  Put(kube::kNetworkAttachments, "net", {{"metadata", {{"name", "vlan100"}}}});
  EXPECT_THAT(store_.CheckNetwork(context_, {false, "net", "vlan100"}), IsOk());
  const absl::Status missing = store_.CheckNetwork(context_, {false, "net", "vlan200"});
  EXPECT_THAT(missing, StatusIs(absl::StatusCode::kNotFound, HasSubstr("network net/vlan200")));
  EXPECT_TRUE(kube::IsNotFound(missing));
}

TEST_F(VmStoreSources, the_management_network_always_is) {
  EXPECT_THAT(store_.CheckNetwork(context_, {true, "", ""}), IsOk());
  EXPECT_THAT(script_.requests(), SizeIs(0));
}

TEST_F(VmStoreSources, reads_a_public_key_without_the_white_space_around_it) {
  PutKey({{"publicKey", "ssh-ed25519 AAAA ops@example\n"}});
  EXPECT_THAT(store_.PublicKey(context_, "keys", "ops"),
              IsOkAndHolds("ssh-ed25519 AAAA ops@example"));
}

TEST_F(VmStoreSources, names_a_key_that_is_missing_or_holds_none) {
  EXPECT_THAT(store_.PublicKey(context_, "keys", "ops"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("SSH key keys/ops")));
  for (const json& spec : {json({{"publicKey", " \n"}}), json({{"publicKey", 1}}), json(nullptr)}) {
    PutKey(spec);
    EXPECT_THAT(store_.PublicKey(context_, "keys", "ops"),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         AllOf(HasSubstr("keys/ops"), HasSubstr("no public key"))))
        << spec;
  }
}

TEST_F(VmStoreSources, refuses_a_key_of_several_lines) {
  PutKey({{"publicKey", "ssh-rsa AAAA a\nssh-rsa AAAB b\n"}});
  EXPECT_THAT(store_.PublicKey(context_, "keys", "ops"),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("more than one line")));
}

}  // namespace
}  // namespace nomad_harvester::harvester
