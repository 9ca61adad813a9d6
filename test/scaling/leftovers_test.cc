// SPDX-License-Identifier: Apache-2.0
#include "execution/leftovers.h"

#include "pool_fixture.h"
#include "world.h"

namespace nomad_harvester::scaling {
namespace {

using nlohmann::json;
using std::chrono::minutes;
using std::chrono::seconds;
using support::IsOk;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kClaim[] = "web-a-disk-0-abcde";

class SweepTest : public PoolFixture {
 protected:
  SweepResult Sweep(bool dry_run = false) {
    Forget();
    auto swept = SweepLeftovers(context(), Deps(), dry_run);
    EXPECT_THAT(swept, IsOk());
    return swept.ok() ? *std::move(swept) : SweepResult{};
  }
  // The pool's loop has found that this VM is gone.
  void Gone(const std::string& vm) { troubles_.gone_since[vm] = clock_.Now(); }
  void PutClaim(const std::string& name, const std::string& pool = "web",
                const json& finalizers = json::array()) {
    json claim = {
        {"apiVersion", "v1"},
        {"kind", "PersistentVolumeClaim"},
        {"metadata", {{"namespace", "nomad"}, {"name", name}, {"finalizers", finalizers}}}};
    if (!pool.empty()) claim["metadata"]["labels"] = {{harvester::kPoolLabel, pool}};
    cluster_.PutObject(claim);
  }
  void PutSecret(const std::string& vm, const std::string& pool = "web",
                 const std::string& action = "made") {
    cluster_.PutObject({{"apiVersion", "v1"},
                        {"kind", "Secret"},
                        {"metadata",
                         {{"namespace", "nomad"},
                          {"name", harvester::SecretName(vm)},
                          {"labels",
                           {{harvester::kManagedByLabel, harvester::kManagedByValue},
                            {harvester::kPoolLabel, pool}}},
                          {"annotations", {{harvester::kActionIdAnnotation, action}}}}}});
  }
  Strings Names(const std::vector<json>& objects) const {
    Strings names;
    for (const json& object : objects) names.push_back(base::GetString(object["metadata"], "name"));
    return names;
  }
  Strings Claims() const { return Names(cluster_.Claims()); }
  Strings Secrets() const { return Names(cluster_.Secrets()); }
};

TEST_F(SweepTest, C10_vms_are_listed_after_what_may_belong_to_them_and_each_list_is_needed) {
  PutClaim(kClaim);
  for (const std::string list :
       {"list persistentvolumeclaims", "list secrets", "list virtualmachines"}) {
    Forget();
    Next(list, Failed());
    EXPECT_FALSE(SweepLeftovers(context(), Deps(), /*dry_run=*/false).ok());
    EXPECT_EQ(Last(), list);
  }
  EXPECT_THAT(Claims(), ElementsAre(kClaim));
  Sweep();
  EXPECT_THAT(Sent(),
              ElementsAre("list persistentvolumeclaims", "list secrets", "list virtualmachines",
                          "get virtualmachines", "delete persistentvolumeclaims"));
}

TEST_F(SweepTest, C10_a_volume_is_deleted_by_label_or_if_it_was_seen_on_a_marked_vm) {
  PutClaim(kClaim);
  PutClaim("web-b-disk-0-abcde", "");         // a volume of CDI, of a VM that we removed
  PutClaim("web-b-disk-1-abcde", "");         // it only has the name of one
  PutClaim("web-c-disk-0-abcde", "");         // of somebody else's
  PutClaim("web-d-disk-0-abcde", "another");  // of another pool
  PutClaim("data");
  PutClaim("data");
  Gone("web-b");
  troubles_.seen_claims["web-b-disk-0-abcde"] = "web-b";
  Sweep();
  EXPECT_THAT(Claims(), testing::UnorderedElementsAre("web-c-disk-0-abcde", "web-d-disk-0-abcde",
                                                      "data", "web-b-disk-1-abcde"));
}

// A clone of the volume or of its labels is somebody's data.
TEST_F(SweepTest, C10_a_volume_of_the_pool_with_a_name_that_harvester_would_not_give_is_kept) {
  const Strings names = {"web-a-disk-backup", "web-a-disk-0", "web-a-disk-0-Abcde",
                         "web-a-disk-x-abcde", "-disk-0-abcde"};
  for (const std::string& name : names) PutClaim(name);
  Sweep();
  EXPECT_THAT(Claims(), testing::UnorderedElementsAreArray(names));
}

TEST_F(SweepTest, C10_a_secret_of_the_pool_with_another_name_is_kept) {
  PutSecret("web-a");
  json secret = cluster_.Secrets().at(0);
  for (const std::string name : {"web-a-certificate", "ca"}) {
    secret["metadata"]["name"] = name;
    secret["metadata"].erase("uid");
    cluster_.PutObject(secret);
  }
  clock_.Advance(minutes(10) + seconds(1));
  Sweep();
  EXPECT_THAT(Secrets(), testing::UnorderedElementsAre("web-a-certificate", "ca"));
}

TEST_F(SweepTest, C10_a_delete_names_the_uid_that_was_listed) {
  PutClaim(kClaim);
  PutSecret("web-b");
  const std::string claim = support::UidOf(cluster_.Claims().at(0));
  const std::string secret = support::UidOf(cluster_.Secrets().at(0));
  HoldLease({"web-b"});
  Sweep();
  EXPECT_EQ(Body("delete persistentvolumeclaims")["preconditions"]["uid"], claim);
  EXPECT_EQ(Body("delete secrets")["preconditions"]["uid"], secret);
}

TEST_F(SweepTest, C10_a_vm_that_is_used_that_appears_or_that_cannot_be_read_keeps_everything) {
  PutClaim(kClaim);
  PutSecret("web-a");
  HoldLease({"web-a"});
  Gone("web-a");
  Next("get virtualmachines", Failed());
  EXPECT_THAT(Sweep().left, IsEmpty());
  EXPECT_EQ(Count("get virtualmachines"), 1U) << "it is asked once for volume and Secret";
  EXPECT_THAT(Effects(), IsEmpty());
  json vm = {{"apiVersion", "kubevirt.io/v1"},
             {"kind", "VirtualMachine"},
             {"metadata", {{"namespace", "nomad"}, {"name", "web-a"}}}};
  After("list virtualmachines", [&] { cluster_.PutObject(vm); });
  Sweep();
  EXPECT_THAT(Effects(), IsEmpty());
  // Another VM uses the volume.
  PutClaim("web-b-disk-0-abcde");
  vm["metadata"]["name"] = "spare";
  vm["spec"]["template"]["spec"]["volumes"] = json::array(
      {{{"name", "d"}, {"persistentVolumeClaim", {{"claimName", "web-b-disk-0-abcde"}}}}});
  cluster_.PutObject(vm);
  Gone("web-b");
  Sweep();
  EXPECT_THAT(Effects(), IsEmpty());
}

TEST_F(SweepTest, C10_a_secret_that_no_action_names_is_garbage_after_ten_minutes) {
  PutSecret("web-a");
  PutSecret("web-b");
  PutSecret("web-d", "another");
  HoldLease({"web-a"});
  Sweep();
  EXPECT_THAT(Secrets(), testing::UnorderedElementsAre("web-b-cloudinit", "web-d-cloudinit"));
  clock_.Advance(minutes(10) + seconds(1));
  Sweep();
  EXPECT_THAT(Secrets(), testing::ElementsAre("web-d-cloudinit"));
}

// A late request for the VM may still need it.
TEST_F(SweepTest, C10_a_secret_whose_vm_has_no_answer_yet_is_kept_for_as_long_as_a_lease_lasts) {
  PutSecret("web-a");
  HoldLease({"web-a"});
  troubles_.unanswered["web-a"] = clock_.Now();
  clock_.Advance(kLeaseDuration - seconds(1));
  EXPECT_TRUE(Sweep().left.contains("web-a"));
  EXPECT_THAT(Secrets(), ElementsAre("web-a-cloudinit"));
  clock_.Advance(seconds(1));
  Sweep();
  EXPECT_THAT(Secrets(), IsEmpty());
}

TEST_F(SweepTest, C10_a_secret_gets_the_vm_of_its_action_as_owner_and_no_other) {
  AddUnjoined("web-a");
  AddUnjoined("web-b");
  PutSecret("web-a");
  PutSecret("web-b", "web", "other-action");
  EXPECT_THAT(Sweep().unowned, IsOk());
  EXPECT_THAT(Effects(), ElementsAre("patch secrets"));
  EXPECT_EQ(Body("patch secrets")["metadata"]["ownerReferences"][0]["uid"], UidOf("web-a"));
  ASSERT_EQ(events_.size(), 1U);
  EXPECT_EQ(events_[0].object, "web-a-cloudinit");
}

TEST_F(SweepTest, C10_an_owner_that_is_refused_is_reported_until_it_is_set) {
  AddUnjoined("web-a");
  PutSecret("web-a");
  Next("patch secrets", Refused());
  EXPECT_FALSE(Sweep().unowned.ok());
  EXPECT_FALSE(Sweep().unowned.ok());
  EXPECT_THAT(Effects(), IsEmpty()) << "it waits for its next attempt";
  clock_.Advance(seconds(2));
  EXPECT_THAT(Sweep().unowned, IsOk());
}

TEST_F(SweepTest, L1_a_volume_that_is_refused_holds_up_neither_secret_nor_other_volumes) {
  PutClaim(kClaim);
  PutClaim("web-b-disk-0-abcde");
  PutSecret("web-a");
  Next("delete persistentvolumeclaims", Refused());
  Gone("web-a");
  const SweepResult swept = Sweep();
  EXPECT_THAT(Claims(), ElementsAre(kClaim));
  EXPECT_THAT(Secrets(), IsEmpty());
  ASSERT_TRUE(swept.left.contains("web-a"));
  EXPECT_THAT(swept.left.at("web-a").what, HasSubstr(std::string("volume ") + kClaim));
}

TEST_F(SweepTest, L2_a_refused_volume_waits_and_is_one_warning_and_one_at_each_doubling) {
  PutClaim(kClaim);
  Always("delete persistentvolumeclaims", Refused());
  const std::string warning = "WARN Could not clean up after a VM; trying again later";
  Sweep();
  Sweep();
  EXPECT_THAT(Effects(), IsEmpty());
  EXPECT_EQ(Logged(warning), 1U);
  EXPECT_EQ(events_.size(), 1U);
  SweepResult swept;
  std::size_t attempts = 1;
  for (const base::MonoTime begun = clock_.Now(); clock_.Now() - begun < minutes(5);) {
    clock_.Advance(seconds(1));
    swept = Sweep();
    attempts += Effects().size();
  }
  EXPECT_TRUE(swept.left.at("web-a").in_trouble);
  EXPECT_EQ(Logged(warning), 7U) << "1, 2, 4, … 32, 60 s";
  EXPECT_GT(attempts, Logged(warning)) << "the longest wait does not double";
  Next("delete persistentvolumeclaims", simulator::Fault::None());
  clock_.Advance(minutes(2));
  Sweep();
  EXPECT_THAT(Claims(), IsEmpty());
  EXPECT_THAT(troubles_.retries.LastOf({kDeleteClaim, kClaim}), IsOk());
}

TEST_F(SweepTest, L4_a_volume_that_is_being_deleted_is_left_and_not_deleted_again) {
  PutClaim(kClaim, "web", {"kubernetes.io/pvc-protection"});
  cluster_.HangClaim(kClaim);
  Gone("web-a");
  Sweep();
  const SweepResult again = Sweep();
  EXPECT_THAT(Effects(), IsEmpty());
  EXPECT_THAT(again.left.at("web-a").what, HasSubstr("(being deleted)"));
  EXPECT_FALSE(again.left.at("web-a").in_trouble) << "it only needs time";
}

TEST_F(SweepTest, C13_a_dry_run_reports_and_sends_only_reads) {
  PutClaim(kClaim);
  PutSecret("web-a");
  Always("delete secrets", Refused());
  HoldLease({"web-a"});
  Sweep();
  events_.clear();
  PutClaim(kClaim);
  const SweepResult swept = Sweep(/*dry_run=*/true);
  EXPECT_THAT(Effects(), IsEmpty());
  EXPECT_EQ(events_.size(), 2U) << "what waits for its next attempt is reported, too";
  EXPECT_TRUE(swept.left.contains("web-a"));
}

TEST_F(SweepTest, T1_only_what_nobody_expected_is_logged_at_info) {
  PutClaim(kClaim);
  PutClaim("web-b-disk-0-abcde");
  PutSecret("web-a");
  Gone("web-a");
  Sweep();
  EXPECT_THAT(Log(), ElementsAre("INFO Deleting a leftover volume"));
  EXPECT_THAT(sink_->Text(), HasSubstr("web-b-disk-0-abcde"));
}

class DeletionsTest : public PoolFixture {
 protected:
  void Observe(World world) {
    DeletedVms(deps_).Observe(Decisions(world.Snapshot()), clock_.Now());
  }
  const PoolDependencies deps_ = Deps();
};

TEST_F(DeletionsTest, C12_a_removal_has_succeeded_once_its_vm_is_terminating) {
  troubles_.deletions = {{"a", {"act", true}}};
  Observe(World().With(Vm("a").Joined().Marked()));
  EXPECT_FALSE(troubles_.unrecorded.removed);
  EXPECT_EQ(troubles_.removed_last, "");
  Observe(World().With(Vm("a").Joined().Marked().Terminating()));
  EXPECT_TRUE(troubles_.unrecorded.removed);
  EXPECT_EQ(troubles_.removed_last, "act");
  EXPECT_TRUE(troubles_.deletions.empty());
}

TEST_F(DeletionsTest, C12_one_whose_vm_is_rolled_back_is_forgotten) {
  troubles_.deletions = {{"a", {"act", true}}};
  Observe(World().With(Vm("a").Joined()));
  EXPECT_TRUE(troubles_.deletions.empty());
  Observe(World());
  EXPECT_FALSE(troubles_.unrecorded.removed) << "somebody else deletes it later";
}

TEST_F(DeletionsTest, R4_one_of_a_vm_that_was_never_ready_is_no_success_and_takes_none_back) {
  troubles_.deletions = {{"b", {"act", false}}};
  Observe(World());
  EXPECT_FALSE(troubles_.unrecorded.removed);
  troubles_.deletions = {{"a", {"act", true}}, {"b", {"act", false}}};
  Observe(World());
  EXPECT_TRUE(troubles_.unrecorded.removed);
}

}  // namespace
}  // namespace nomad_harvester::scaling
