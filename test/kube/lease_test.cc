// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/kube/lease.h"

#include <string>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/base/time.h"
#include "nomad_harvester/kube/observed.h"

#include "kube/client_fixture.h"

namespace nomad_harvester::kube {
namespace {

using support::IsOk;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

base::WallTime At(const std::string& text) { return *base::ParseRfc3339(text); }

constexpr char kLease[] = R"({
    "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
    "metadata": {"name": "nomad-harvester-autoscaler-web", "namespace": "default", "uid": "u-9",
                 "resourceVersion": "41", "annotations": {"x/action": "{}", "y": "z"}},
    "spec": {"holderIdentity": "host_7_bcdf", "leaseDurationSeconds": 20,
             "acquireTime": "2026-11-21T02:00:00.000000Z",
             "renewTime": "2026-11-21T02:03:04.123456Z", "leaseTransitions": 3}})";

Lease Parse(const std::string& text) { return ParseLease({Json::parse(text), std::nullopt}); }

TEST(ParseLease, reads_every_member) {
  const Lease lease = ParseLease({Json::parse(kLease), At("2026-11-21T02:03:05Z")});
  EXPECT_EQ(lease.name, "nomad-harvester-autoscaler-web");
  EXPECT_EQ(lease.ns, "default");
  EXPECT_EQ(lease.uid, "u-9");
  EXPECT_EQ(lease.resource_version, "41");
  EXPECT_EQ(lease.holder, "host_7_bcdf");
  EXPECT_EQ(lease.lease_duration_seconds, 20);
  EXPECT_EQ(lease.acquire_time, At("2026-11-21T02:00:00Z"));
  EXPECT_EQ(lease.renew_time, At("2026-11-21T02:03:04.123456Z"));
  EXPECT_EQ(lease.transitions, 3);
  EXPECT_THAT(lease.annotations, UnorderedElementsAre(Pair("x/action", "{}"), Pair("y", "z")));
  EXPECT_EQ(lease.server_time, At("2026-11-21T02:03:05Z"));
}

TEST(ParseLease, what_is_missing_or_unreadable_is_as_if_it_were_absent) {
  for (const char* text :
       {"{}", "[]", "null", R"({"metadata":7,"spec":"x"})", R"({"metadata":{},"spec":{}})",
        R"({"metadata":{"name":1,"uid":{},"resourceVersion":41,"annotations":["a"]},
            "spec":{"holderIdentity":7,"leaseDurationSeconds":"20","renewTime":1,
                    "acquireTime":"yesterday","leaseTransitions":null}})"}) {
    const Lease lease = Parse(text);
    EXPECT_EQ(lease.name, "") << text;
    EXPECT_EQ(lease.resource_version, "") << text;
    EXPECT_EQ(lease.holder, "") << text;
    EXPECT_EQ(lease.lease_duration_seconds, 0) << text;
    EXPECT_EQ(lease.renew_time, std::nullopt) << text;
    EXPECT_EQ(lease.acquire_time, std::nullopt) << text;
    EXPECT_EQ(lease.transitions, 0) << text;
    EXPECT_THAT(lease.annotations, IsEmpty()) << text;
  }
}

TEST(ParseLeaseReply, C11_a_success_that_is_no_lease_is_an_error_that_names_the_lease) {
  const auto reply = [](const char* text) {
    return absl::StatusOr<Observed>({Json::parse(text), std::nullopt});
  };
  EXPECT_THAT(ParseLeaseReply(reply(kLease), "web"), IsOk());
  EXPECT_THAT(ParseLeaseReply(reply("{}"), "web"),
              support::StatusIs(absl::StatusCode::kUnavailable,
                                testing::HasSubstr("Lease web: the reply is no Lease")));
  EXPECT_THAT(ParseLeaseReply(base::NotFound("gone"), "web"),
              support::StatusIs(absl::StatusCode::kNotFound));
}

TEST(ParseLease, annotations_that_are_not_text_are_left_out) {
  EXPECT_THAT(Parse(R"({"metadata":{"annotations":{"a":"b","c":7,"d":null}}})").annotations,
              UnorderedElementsAre(Pair("a", "b")));
}

TEST(ParseLease, numbers_beyond_sense_are_bounded) {
  const Lease lease =
      Parse(R"({"spec":{"leaseDurationSeconds":9223372036854775807,"leaseTransitions":-4}})");
  EXPECT_EQ(lease.lease_duration_seconds, 2'147'483'647);
  EXPECT_EQ(lease.transitions, 0);
}

TEST(LeaseObject, is_what_the_API_server_takes) {
  Lease lease;
  lease.name = "l";
  lease.ns = "default";
  lease.uid = "the server's";
  lease.resource_version = "the server's";
  lease.holder = "me";
  lease.lease_duration_seconds = 20;
  lease.acquire_time = lease.renew_time = At("2026-11-21T02:03:04.5Z");
  lease.transitions = 1;
  lease.annotations = {{"a", "b"}};
  EXPECT_EQ(LeaseObject(lease, {{"pool", "web"}}), Json::parse(R"({
      "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
      "metadata": {"name": "l", "namespace": "default", "labels": {"pool": "web"},
                   "annotations": {"a": "b"}},
      "spec": {"holderIdentity": "me", "leaseDurationSeconds": 20, "leaseTransitions": 1,
               "acquireTime": "2026-11-21T02:03:04.500000Z",
               "renewTime": "2026-11-21T02:03:04.500000Z"}})"));
}

// Kubernetes refuses a duration of 0.
TEST(LeaseObject, leaves_out_what_is_not_set) {
  Lease lease;
  lease.name = "l";
  lease.ns = "default";
  EXPECT_EQ(LeaseObject(lease, {}), Json::parse(R"({
      "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
      "metadata": {"name": "l", "namespace": "default"}, "spec": {"leaseTransitions": 0}})"));
}

TEST(LeaseObject, reads_back_as_what_was_written) {
  const Lease before = Parse(kLease);
  const Lease after = ParseLease({LeaseObject(before, {}), std::nullopt});
  EXPECT_EQ(after.name, before.name);
  EXPECT_EQ(after.holder, before.holder);
  EXPECT_EQ(after.renew_time, before.renew_time);
  EXPECT_EQ(after.acquire_time, before.acquire_time);
  EXPECT_EQ(after.transitions, before.transitions);
  EXPECT_EQ(after.annotations, before.annotations);
}

TEST(LeasePatch, changes_what_has_a_value_and_nothing_else) {
  LeaseChange change;
  change.resource_version = "41";
  change.renew_time = At("2026-11-21T02:03:04Z");
  EXPECT_EQ(LeasePatch(change), Json::parse(R"({
      "metadata": {"resourceVersion": "41"},
      "spec": {"renewTime": "2026-11-21T02:03:04.000000Z"}})"));
}

TEST(LeasePatch, can_change_everything_at_once) {
  LeaseChange change;
  change.resource_version = "41";
  change.holder = "me";
  change.lease_duration_seconds = 20;
  change.renew_time = change.acquire_time = At("2026-11-21T02:03:04.000001Z");
  change.transitions = 4;
  change.annotations = {{"set", "value"}, {"empty", ""}, {"removed", std::nullopt}};
  EXPECT_EQ(LeasePatch(change), Json::parse(R"({
      "metadata": {"resourceVersion": "41",
                   "annotations": {"set": "value", "empty": "", "removed": null}},
      "spec": {"holderIdentity": "me", "leaseDurationSeconds": 20, "leaseTransitions": 4,
               "acquireTime": "2026-11-21T02:03:04.000001Z",
               "renewTime": "2026-11-21T02:03:04.000001Z"}})"));
}

TEST(LeasePatch, an_empty_holder_releases) {
  LeaseChange change;
  change.holder = "";
  EXPECT_EQ(LeasePatch(change), Json::parse(R"({"spec": {"holderIdentity": ""}})"));
}

TEST(LeasePatch, no_change_is_an_empty_patch) { EXPECT_EQ(LeasePatch({}), Json::object()); }

class LeaseRequests : public ClientFixture {
 protected:
  static constexpr char kName[] = "nomad-harvester-autoscaler-web";
};

TEST_F(LeaseRequests, a_lease_is_read_with_the_servers_clock) {
  transport_->Reply(200, kLease, {{"Date", "Sat, 21 Nov 2026 02:03:05 GMT"}});
  const auto observed = client_.Get(context_, kLeases, "default", kName);
  ASSERT_THAT(observed, IsOk());
  const Lease lease = ParseLease(*observed);
  EXPECT_EQ(lease.holder, "host_7_bcdf");
  EXPECT_EQ(lease.server_time, At("2026-11-21T02:03:05Z"));
  EXPECT_EQ(OnlyRequest().target,
            "/apis/coordination.k8s.io/v1/namespaces/default/leases/"
            "nomad-harvester-autoscaler-web");
}

TEST_F(LeaseRequests, of_two_who_create_the_lease_one_is_told_that_it_exists) {
  transport_->Reply(409, StatusBody(409, "AlreadyExists", "leases already exists"));
  Lease lease;
  lease.name = kName;
  lease.ns = "default";
  EXPECT_TRUE(kube::IsAlreadyExists(
      client_.Create(context_, kLeases, "default", LeaseObject(lease, {})).status()));
  EXPECT_EQ(OnlyRequest().idempotency, http::Idempotency::kIdempotent);
}

TEST_F(LeaseRequests, a_renewal_by_resourceVersion_meets_a_conflict_when_another_was_faster) {
  transport_->Reply(409, ConflictBody());
  const auto patched = client_.MergePatch(context_, kLeases, "default", kName,
                                          LeasePatch({.resource_version = "41", .holder = "me"}));
  EXPECT_TRUE(IsConflict(patched.status()));
  EXPECT_EQ(Body()["metadata"]["resourceVersion"], "41");
  EXPECT_EQ(OnlyRequest().idempotency, http::Idempotency::kIdempotent);
}

TEST_F(LeaseRequests, a_patch_without_a_version_is_sent_once) {
  transport_->Reply(200, kLease);
  ASSERT_THAT(client_.MergePatch(context_, kLeases, "default", kName, LeasePatch({.holder = ""})),
              IsOk());
  EXPECT_EQ(OnlyRequest().idempotency, http::Idempotency::kOnce);
}

}  // namespace
}  // namespace nomad_harvester::kube
