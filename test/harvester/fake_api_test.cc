// The fake itself: what the tests of VmStore rely on.
#include "harvester/fake_api.h"

#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "harvester/store_fixture.h"
#include "support/status_matchers.h"

namespace nomad_harvester::harvester {
namespace {

using nlohmann::json;
using support::IsOk;
using support::StatusIs;

class FakeApiTest : public StoreTest {
 protected:
  kube::KubeClient client_{api_};
};

TEST_F(FakeApiTest, creates_once_and_finds_again) {
  const json object = {{"metadata", {{"name", "a"}}}};
  const auto created = client_.Create(context_, kube::kSecrets, kNs, object);
  ASSERT_THAT(created, IsOk());
  EXPECT_NE(created->object["metadata"]["uid"], "");
  EXPECT_TRUE(
      kube::IsAlreadyExists(client_.Create(context_, kube::kSecrets, kNs, object).status()));
  EXPECT_THAT(client_.Get(context_, kube::kSecrets, kNs, "a"), IsOk());
  EXPECT_TRUE(kube::IsNotFound(client_.Get(context_, kube::kSecrets, "other", "a").status()));
}

TEST_F(FakeApiTest, honours_preconditions) {
  api_->Put(kube::kSecrets, kNs, {{"metadata", {{"name", "a"}, {"uid", "u"}}}});
  EXPECT_TRUE(
      kube::IsConflict(client_.Delete(context_, kube::kSecrets, kNs, "a", {"other", "", {}})));
  EXPECT_TRUE(kube::IsConflict(client_.Delete(context_, kube::kSecrets, kNs, "a", {"u", "1", {}})));
  EXPECT_TRUE(kube::IsConflict(client_
                                   .MergePatch(context_, kube::kSecrets, kNs, "a",
                                               {{"metadata", {{"resourceVersion", "1"}}}})
                                   .status()));
  EXPECT_THAT(client_.Delete(context_, kube::kSecrets, kNs, "a", {"u", "", {}}), IsOk());
  EXPECT_EQ(api_->Find(kube::kSecrets, kNs, "a"), nullptr);
}

TEST_F(FakeApiTest, loses_a_reply_after_the_effect) {
  api_->LoseReplyOf(http::Method::kPost);
  EXPECT_THAT(client_.Create(context_, kube::kSecrets, kNs, {{"metadata", {{"name", "a"}}}}),
              StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_NE(api_->Find(kube::kSecrets, kNs, "a"), nullptr);
  EXPECT_THAT(client_.Create(context_, kube::kSecrets, kNs, {{"metadata", {{"name", "b"}}}}),
              IsOk());
}

TEST_F(FakeApiTest, selects_and_pages) {
  for (int i = 0; i < 7; ++i) {
    api_->Put(kube::kSecrets, kNs,
              {{"metadata",
                {{"name", "s" + std::to_string(i)}, {"labels", {{"odd", i % 2 ? "1" : "0"}}}}}});
  }
  kube::ListOptions options;
  options.label_selector = "odd=0";
  options.page_size = 2;
  const auto list = client_.List(context_, kube::kSecrets, kNs, options);
  ASSERT_THAT(list, IsOk());
  EXPECT_EQ(list->items.size(), 4U);
  EXPECT_EQ(list->requests, 2);
}

}  // namespace
}  // namespace nomad_harvester::harvester
