#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "harvester/samples.h"
#include "harvester/store_fixture.h"
#include "support/status_matchers.h"

namespace nomad_harvester::harvester {
namespace {

using nlohmann::json;
using support::IsOk;
using support::StatusIs;
using testing::SizeIs;

class VmStoreClaims : public StoreTest {
 protected:
  json* Find(const std::string& name) {
    return api_->Find(kube::kPersistentVolumeClaims, kNs, name);
  }
  void Put(const json& metadata) {
    api_->Put(kube::kPersistentVolumeClaims, kNs,
              {{"metadata", metadata}, {"spec", {{"volumeMode", "Block"}}}});
  }
};

TEST_F(VmStoreClaims, C10_lists_all_of_the_namespace_because_CDI_loses_labels) {
  Put({{"name", "batch-a-disk-0-x"}, {"uid", "u1"}, {"labels", {{kPoolLabel, "batch"}}}});
  Put({{"name", "batch-b-disk-0-y"},
       {"uid", "u2"},
       {"creationTimestamp", "2026-11-21T01:00:00Z"},
       {"deletionTimestamp", "2026-11-21T02:00:00Z"}});
  const auto seen = store_.ListClaims(context_);
  ASSERT_THAT(seen, IsOk());
  EXPECT_EQ(seen->server_time, At("2026-11-21T02:03:04Z"));
  ASSERT_THAT(seen->value, SizeIs(2));
  EXPECT_EQ(seen->value[0].name, "batch-a-disk-0-x");
  EXPECT_EQ(seen->value[0].uid, "u1");
  EXPECT_EQ(seen->value[0].pool, "batch");
  EXPECT_FALSE(seen->value[0].terminating);
  EXPECT_EQ(seen->value[1].pool, "");
  EXPECT_TRUE(seen->value[1].terminating);
  EXPECT_EQ(seen->value[1].created_at, At("2026-11-21T01:00:00Z"));
  ASSERT_THAT(api_->calls(), SizeIs(1));
  EXPECT_FALSE(api_->calls()[0].query.contains("labelSelector"));
}

TEST_F(VmStoreClaims, gets_one) {
  Put({{"name", "c"}, {"uid", "u1"}, {"labels", {{kPoolLabel, "batch"}}}});
  const auto claim = store_.GetClaim(context_, "c");
  ASSERT_THAT(claim, IsOk());
  EXPECT_EQ(claim->uid, "u1");
  EXPECT_EQ(claim->pool, "batch");
  EXPECT_THAT(store_.GetClaim(context_, "d"), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(VmStoreClaims, deletes_by_uid_and_takes_gone_for_deleted) {
  Put({{"name", "c"}, {"uid", "u1"}});
  const auto claim = store_.GetClaim(context_, "c");
  ASSERT_THAT(claim, IsOk());
  EXPECT_THAT(store_.DeleteClaim(context_, *claim), IsOk());
  EXPECT_EQ(Find("c"), nullptr);
  EXPECT_EQ(api_->calls().back().body["preconditions"], json({{"uid", "u1"}}));
  EXPECT_THAT(store_.DeleteClaim(context_, *claim), IsOk());
}

TEST_F(VmStoreClaims, never_deletes_a_claim_that_was_made_anew) {
  Put({{"name", "c"}, {"uid", "u2"}});
  Claim old;
  old.name = "c";
  old.uid = "u1";
  EXPECT_TRUE(kube::IsConflict(store_.DeleteClaim(context_, old)));
  old.uid.clear();
  EXPECT_THAT(store_.DeleteClaim(context_, old), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_NE(Find("c"), nullptr);
}

// Harvester's webhook refuses the claim of a VM that still stands.
TEST_F(VmStoreClaims, passes_on_that_a_claim_is_in_use) {
  Put({{"name", "c"}, {"uid", "u1"}});
  api_->Answer(http::Method::kDelete, 409, "Conflict",
               "can not delete the volume c which is currently attached to VM: nomad/other");
  Claim claim;
  claim.name = "c";
  claim.uid = "u1";
  EXPECT_THAT(store_.DeleteClaim(context_, claim),
              StatusIs(absl::StatusCode::kFailedPrecondition, testing::HasSubstr("attached")));
}

}  // namespace
}  // namespace nomad_harvester::harvester
