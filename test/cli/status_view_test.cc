// SPDX-License-Identifier: Apache-2.0
// The output of nomad-harvester status for states that are hard to produce.
#include "status_view.h"

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/scaling/replacement.h"

#include "cli/golden.h"
#include "nlohmann/json.hpp"
#include "scaling/world.h"
#include "text.h"

namespace nomad_harvester::cli {
namespace {

using scaling::Node;
using scaling::Vm;
using scaling::World;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

scaling::Inspection Inspect(World& world) {
  scaling::Inspection inspection;
  inspection.snapshot = world.Snapshot();
  inspection.report = ReportStatus(inspection.snapshot, {});
  return inspection;
}

PoolStatus Describe(World& world) { return DescribePool(Inspect(world)); }

std::string TableOf(const scaling::Inspection& inspection,
                    StatusDetail detail = StatusDetail::kUsual, std::size_t width = 0) {
  return StatusTable(DescribePool(inspection), detail, width);
}
std::string TableOf(World& world, StatusDetail detail = StatusDetail::kUsual,
                    std::size_t width = 0) {
  return TableOf(Inspect(world), detail, width);
}

nlohmann::json Json(const scaling::Inspection& inspection) {
  return nlohmann::json::parse(PrintableJson(StatusDocument(DescribePool(inspection))));
}
nlohmann::json Json(World& world) { return Json(Inspect(world)); }

// The VM must exist.
const VmStatus& VmOf(const PoolStatus& status, const std::string& name) {
  return *std::find_if(status.vms.begin(), status.vms.end(),
                       [&](const VmStatus& vm) { return vm.vm().name == name; });
}
std::string Story(const PoolStatus& status, const std::string& vm,
                  const scaling::EventsView& events = {}) {
  return VmStory(status, VmOf(status, vm), events);
}

// A pool that has everything that the output can tell.
scaling::Inspection FullInspection() {
  World world;
  world.Policy().ready_drivers = {"docker"};
  world.With(Vm("web-a").Joined().Marked().RunsOn("rack1"))
      .With(Node("web-a", "a0000000-0000").Draining("web-a").Driver("exec", true));
  world.With(Vm("web-b").Joined().Protected().DeleteFirst())
      .With(Node("web-b").Driver("docker", true));
  world.With(Vm("web-c").Age(minutes(6)));
  world.With(Vm("web-d").Joined().UnreadableMark()).With(Node("web-d").Driver("docker", true));
  world.With(Vm("web-e").Joined().Marked().NoDrainDeadline().NoForce())
      .With(Node("web-e").Driver("docker", false, "no daemon: \u00e4"));
  world.With(Node("stranger", "b1111111").Ineligible()).With(Node("theirs", "c2222222"));
  std::vector<scaling::VmView>& vms = world.Raw().vms;
  vms[0].addresses = {"10.0.0.1", "fe80::1"};
  vms[0].vm.Change().printable_status = "Stopping \xff";
  vms[1].vm.Change().ready_at = scaling::kNow - minutes(40);
  vms[1].vm.Change().template_hash = "v2:old";
  vms[1].vm.Change().template_parts = R"({"cpu": "1"})";
  scaling::Inspection inspection = Inspect(world);
  inspection.current_template.hash = "v2:new";
  inspection.current_template.parts = R"({"cpu": "2"})";
  inspection.growth_problem = "image: there is none";
  inspection.report.warning = "stopped: web-x";
  inspection.report.drift = "web-b (cpu)";
  inspection.foreign_nodes = {"c2222222"};
  inspection.cordoned_hosts = {{.name = "rack1-a", .vms = {"web-a", "web-x"}},
                               {.name = "rack2-a", .vms = {}}};
  inspection.room = 3;
  inspection.room_text = "3 more VMs: host rack1-b has 6 GiB of memory free, a VM needs 8.4 GiB";
  inspection.unclaimed[{.ns = "default", .pool = "db"}] = {
      {.vm = "db-a", .what = "a drain", .since = scaling::kNow - minutes(30)},
      {.vm = "db-b", .what = "a mark", .since = std::nullopt}};
  inspection.lease.present = true;
  inspection.lease.holder = "host_1_x";
  inspection.lease.renewed_at = scaling::kNow - seconds(90);
  scaling::PoolRecord& record = inspection.lease.record;
  record.action = harvester::LeaseAction{.id = "act",
                                         .from = 4,
                                         .to = 3,
                                         .names = {"web-a", "web-e", "web-n"},
                                         .create = {{"web-n", "act"}},
                                         .cancel = {"web-e"}};
  record.back_off["create"] = {.failures = 2, .retry_at = scaling::kNow + minutes(1)};
  record.back_off["join"] = {.failures = 1, .retry_at = scaling::kNow - minutes(1)};
  record.last_event = scaling::kNow - minutes(5);
  record.policy = {.id = "p1", .at = scaling::kNow - minutes(6)};
  record.last_error = {.action = "old", .at = scaling::kNow - minutes(50), .text = "no:\nweb-z"};
  record.paused.until = scaling::kNow + minutes(10);
  record.nomad_cluster = "key-1";
  return inspection;
}

scaling::EventsView FullEvents() {
  return {.problem = "",
          .events = {{.type = "Warning",
                      .reason = "Failed",
                      .note = "no\nroom",
                      .count = 3,
                      .last = scaling::kNow - minutes(2)},
                     {.type = "Normal", .reason = "Started", .last = scaling::kNow}},
          .earlier = 4};
}

TEST(StatusJson, of_everything_is_that_of_the_golden_file) {
  const PoolStatus status = DescribePool(FullInspection());
  const auto document = StatusDocument(status);
  ExpectGolden("status.json", PrintableJson(document));
  auto vm = VmDocument(VmOf(status, "web-a"), FullEvents());
  EXPECT_EQ(vm["events"].size(), 2U) << "status-vm.yaml has their fields";
  vm.erase("events");
  EXPECT_EQ(vm, document["vms"][0]);
}

// YAML is written from the same document: one VM has every kind of value.
TEST(StatusYaml, of_a_vm_is_that_of_the_golden_file) {
  const PoolStatus status = DescribePool(FullInspection());
  ExpectGolden("status-vm.yaml", PrintableYaml(VmDocument(VmOf(status, "web-b"), FullEvents())));
}

TEST(StatusTable, of_everything_is_that_of_the_golden_file) {
  ExpectGolden("status.txt", TableOf(FullInspection()));
  ExpectGolden("status-wide.txt", TableOf(FullInspection(), StatusDetail::kWide));
}

TEST(VmStory, of_everything_is_that_of_the_golden_file) {
  const PoolStatus status = DescribePool(FullInspection());
  std::string stories;
  for (const VmStatus& vm : status.vms) stories += VmStory(status, vm, FullEvents()) + "\n";
  ExpectGolden("status-vms.txt", stories);
}

TEST(StatusTable, has_a_block_for_each_vm_on_a_terminal_that_is_narrower_than_the_table) {
  World world;
  world.With(Vm("web-a").Joined().Age(minutes(1 + 60 * 74))).With(Node("web-a", "a0000000"));
  world.With(Vm("web-b").Age(minutes(1)));
  const std::string whole = TableOf(world);
  EXPECT_EQ(TableOf(world, StatusDetail::kUsual, 80), whole);
  EXPECT_THAT(TableOf(world, StatusDetail::kUsual, 40),
              testing::EndsWith("\n"
                                "VM:     web-a\n"
                                "STATE:  ready\n"
                                "AGE:    3d2h\n"
                                "NODE:   a0000000 ready, eligible\n"
                                "\n"
                                "VM:     web-b\n"
                                "STATE:  pending\n"
                                "AGE:    1m\n"));
}

TEST(StatusTable, says_in_what_state_the_lease_is_and_which_vms_of_its_action_are_gone) {
  World world;
  world.With(Vm("web-a"));
  scaling::Inspection inspection = Inspect(world);
  scaling::LeaseView& lease = inspection.lease;
  EXPECT_THAT(TableOf(inspection), HasSubstr("Lease:      none yet\n"));
  lease.present = true;
  EXPECT_THAT(TableOf(inspection), HasSubstr("Lease:      free\n"));
  lease.holder = "host_1_x";
  lease.live = true;
  lease.renewed_at = scaling::kNow - seconds(2);
  lease.record.action =
      harvester::LeaseAction{.id = "act", .from = 1, .to = 3, .names = {"web-x", "web-y"}};
  EXPECT_THAT(
      TableOf(inspection),
      AllOf(HasSubstr("Lease:      held by host_1_x, renewed 2s ago\n"),
            HasSubstr("Action:     act, 1 → 3, gone: web-x web-y (if anything is left of them, "
                      "the plugin's Status or nomad-harvester gc removes it)\n")));
  lease.problem = "forbidden";
  EXPECT_THAT(TableOf(inspection),
              AllOf(HasSubstr("Lease:      cannot be read: forbidden\n"),
                    HasSubstr("Trouble:    the pool's Lease cannot be read, so that no Scale can "
                              "begin and a pause is not seen: forbidden\n")));
}

TEST(StatusTable, C12_a_back_off_until_a_time_that_a_wrong_clock_wrote_is_over) {
  World world;
  scaling::Inspection inspection = Inspect(world);
  harvester::BackOffEntry& create = inspection.lease.record.back_off["create"];
  create = {.failures = 1, .retry_at = scaling::kNow + seconds(30)};
  EXPECT_THAT(TableOf(inspection), HasSubstr("Trouble:    creating VMs failed 1 time; next try"));
  create.retry_at = scaling::kNow + minutes(30);
  EXPECT_THAT(TableOf(inspection),
              AllOf(HasSubstr("Back-off:   creating VMs failed 1 time; may be retried\n"),
                    Not(HasSubstr("next try at"))));
}

TEST(Troubles, are_one_line_for_each_reason_however_many_vms_share_it) {
  World world;
  for (const char* name : {"web-a", "web-b", "web-c", "web-d", "web-e", "web-f"}) {
    world.With(Vm(name).Age(minutes(6)));
  }
  world.With(Vm("young").Age(minutes(4)));
  world.With(Vm("off").Joined().Stopped()).With(Node("off").Down());
  world.With(Vm("well").Joined()).With(Node("well"));
  world.With(Vm("clone").Joined().Unmanaged());
  const std::string text = TableOf(world);
  EXPECT_THAT(text, HasSubstr("Trouble:    6 VMs (web-a, web-b, web-c, web-d, web-e and 1 more): "
                              "it has not joined yet: its guest runs"));
  EXPECT_THAT(text,
              HasSubstr("Trouble:    off: it is stopped, and counts; start it, or delete it\n"));
  EXPECT_THAT(text, HasSubstr("Trouble:    clone: it has the pool's label and is no member"));
  EXPECT_THAT(text, Not(HasSubstr("Trouble:    young")));
  EXPECT_THAT(text, Not(HasSubstr("Trouble:    well")));
  const nlohmann::json json = Json(world);
  EXPECT_EQ(json["trouble"][1]["vms"].size() + json["trouble"][2]["vms"].size() +
                json["trouble"][0]["vms"].size(),
            8U);
}

TEST(Troubles, that_several_vms_share_say_whose_text_it_is_if_it_names_one) {
  World world;
  for (const char* name : {"web-a", "web-b"}) {
    world.With(Vm(name).Joined()).With(Node(name));
    world.Raw().vms.back().vm.Change().removal_undone = {
        scaling::kNow - minutes(1), std::string("node ") + name + " is drained"};
  }
  EXPECT_THAT(TableOf(world), HasSubstr("2 VMs (web-a, web-b), such as web-a: its removal was "));
}

TEST(Troubles, that_several_vms_share_say_whose_text_it_is_if_the_others_differ_in_an_id) {
  World world;
  world.With(Vm("web-a").Joined("6a827a9b")).With(Vm("web-b").Joined("7b938bac"));
  world.With(Vm("web-c").Joined()).With(Node("web-c"));
  const std::string text =
      "2 VMs (web-a, web-b), such as web-a: it has joined, and has no live node: Nomad does not "
      "list its node 6a827a9b any more";
  EXPECT_THAT(TableOf(world), HasSubstr("Trouble:    " + text));
  const PoolStatus status = Describe(world);
  EXPECT_THAT(Story(status, "web-a"), HasSubstr("Trouble:    it has joined"));
  EXPECT_THAT(Story(status, "web-b"), HasSubstr("Trouble:    " + text)) << "not its own node";
}

TEST(Troubles, of_nodes_without_a_vm_leave_out_those_of_vms_that_were_removed) {
  World world;
  world.With(Node("stranger", "b1111111"));
  world.With(Node("web-gone", "c2222222").Drained("web-gone"));
  EXPECT_THAT(TableOf(world),
              HasSubstr("Trouble:    nodes of the pool without a VM of ours: stranger\n"));
}

TEST(Troubles, of_a_node_in_another_pool_name_what_it_has_and_what_the_policy_says) {
  World world;
  world.With(Vm("web-a").Joined()).With(Node("web-a"));
  world.Policy().node_class = "wbe";
  EXPECT_THAT(TableOf(world), HasSubstr("Trouble:    web-a: its node is not one of "
                                        "the policy's: node node-web-a is "
                                        "node_class=web"));
  EXPECT_THAT(
      TableOf(world),
      HasSubstr("; check the policy's key node_class: every node of the pool has class web; "
                "if that is not meant, the client configuration in user_data\n"));
}

TEST(Troubles, of_a_node_in_another_pool_name_user_data_unless_all_nodes_agree_on_a_class) {
  const std::string cure = "; check the client configuration in user_data\n";
  World world;
  world.With(Vm("web-a").Joined()).With(Node("web-a"));
  world.With(Vm("web-b").Joined()).With(Node("web-b"));
  world.Policy().node_class = "wbe";
  EXPECT_THAT(TableOf(world), Not(HasSubstr(cure)));
  world.Nodes()[1].node_class = "wbe";
  EXPECT_THAT(TableOf(world), HasSubstr(cure)) << "one is as the policy says";
  world.Nodes()[1].node_class = "db";
  EXPECT_THAT(TableOf(world), HasSubstr(cure)) << "they differ";
  world.Nodes()[1].node_class = "web";
  world.Policy().node_pool = "gpu";
  EXPECT_THAT(TableOf(world), HasSubstr(cure)) << "the class alone does not explain it";
}

struct TroubleCase {
  const char* name;
  std::function<void(World& world)> arrange;
  const char* text;  // of the only trouble; empty: there is none
};

TEST(Troubles, of_a_vm_are_told_in_words) {
  const auto only = [](const Vm& vm) { return [vm](World& world) { world.With(vm); }; };
  const std::vector<TroubleCase> cases = {
      {"joined", [](World& w) { w.With(Vm("v").Joined()).With(Node("v")); }, ""},
      {"lost", only(Vm("v").Joined()), "it has joined, and has no live node: Nomad "},
      {"stopped", only(Vm("v").Joined().Stopped()), "it is stopped, and counts"},
      {"broken", only(Vm("v").Age(minutes(20))), "it has not joined Nomad"},
      {"does not start", only(Vm("v").Age(minutes(1)).FailsToStart("no room on any host")),
       "no room on any host"},
      {"late", only(Vm("v").Age(minutes(6))), "it has not joined yet: its guest runs"},
      {"pending", only(Vm("v").Age(minutes(1))), ""},
      {"being deleted", only(Vm("v").Joined().Terminating()), ""},
      {"stuck",
       [](World& w) {
         w.With(Vm("v").Joined().Terminating());
         w.Raw().vms[0].vm.Change().deleted_at = scaling::kNow - minutes(60);
       },
       "it is stuck in its deletion"},
      {"two ready nodes",
       [](World& w) { w.With(Vm("v").Joined()).With(Node("v", "n1")).With(Node("v", "n2")); },
       "which node it has is not certain: several nodes could be it: n1 (ready), n2 (ready)"},
      {"a second ready node that is another machine",
       [](World& w) {
         w.With(Vm("v").Joined()).With(Node("v").Meta("harvester_vm_uuid", "fw-v"));
         w.With(Node("v", "n2").Meta("a", "b"));
       },
       "its node is node-v, but node n2, which is ready, has its name too"},
      {"unreadable mark",
       [](World& w) { w.With(Vm("v").Joined().UnreadableMark()).With(Node("v")); },
       "its mark cannot be read"},
      {"refused",
       [](World& w) {
         w.With(Vm("v").Joined()).With(Node("v"));
         w.Raw().vms[0].vm.Change().removal_undone = {scaling::kNow - minutes(59),
                                                      "it was protected"};
       },
       "its removal was undone at 2026-03-01T11:01:00Z: it was protected"},
      {"needed by a growth that took its removal back",
       [](World& w) {
         w.With(Vm("v").Joined()).With(Node("v"));
         w.Raw().vms[0].vm.Change().removal_undone = {scaling::kNow - minutes(5),
                                                      scaling::kNeededByGrowth};
       },
       ""},
      {"refused long ago",
       [](World& w) {
         w.With(Vm("v").Joined()).With(Node("v"));
         w.Raw().vms[0].vm.Change().removal_undone = {scaling::kNow - minutes(60),
                                                      "it was protected"};
       },
       ""},
      {"clone", only(Vm("v").Joined().Unmanaged()), "it has the pool's label and is no member"},
  };
  for (const TroubleCase& row : cases) {
    World world;
    row.arrange(world);
    std::string texts;
    for (const Finding& trouble : Describe(world).troubles) {
      if (!trouble.vms.empty()) texts += trouble.text + "\n";
    }
    if (*row.text == '\0') {
      EXPECT_EQ(texts, "") << row.name;
    } else {
      EXPECT_THAT(texts, HasSubstr(row.text)) << row.name;
      EXPECT_EQ(texts.find('\n'), texts.size() - 1) << row.name << ": " << texts;
    }
  }
}

TEST(Troubles, say_nothing_of_nodes_while_nomad_cannot_be_read) {
  World world;
  for (const char* name : {"a", "b", "c", "d"}) world.With(Vm(name).Joined());
  world.With(Vm("late").Age(minutes(20))).With(Node("other")).NomadUnreadable();
  const scaling::Inspection inspection = Inspect(world);
  EXPECT_TRUE(DescribePool(inspection).troubles.empty());
  EXPECT_EQ(inspection.report.warning, "");
}

TEST(Troubles, C13_tell_of_a_policy_that_changes_nothing) {
  World world;
  world.Policy().dry_run = true;
  const std::vector<Finding> troubles = Describe(world).troubles;
  ASSERT_EQ(troubles.size(), 1U);
  EXPECT_THAT(troubles[0].text, HasSubstr("the policy sets dry-run"));
}

TEST(StateWithoutTimes, differs_if_something_has_happened_and_not_with_the_clock) {
  World world;
  world.With(Vm("v").Joined()).With(Node("v"));
  const std::string before = StateWithoutTimes(Describe(world));
  world.Raw().now += seconds(7);
  scaling::Inspection later = Inspect(world);
  later.lease.renewed_at = scaling::kNow;
  EXPECT_EQ(StateWithoutTimes(DescribePool(later)), before);
  world.Nodes()[0].eligible = false;
  EXPECT_NE(StateWithoutTimes(Describe(world)), before);
}

TEST(Troubles, of_a_pool_are_told_unless_the_reason_says_them) {
  World world;
  world.With(Vm("web-a").Joined()).With(Node("web-a"));
  scaling::Inspection inspection = Inspect(world);
  inspection.lease.present = true;
  inspection.lease.holder = "host_1_x";
  inspection.lease.live = false;
  inspection.lease.record.paused.always = true;
  EXPECT_THAT(TableOf(inspection),
              AllOf(HasSubstr("Trouble:    pool default/web is paused"),
                    HasSubstr("Trouble:    the process that holds the Lease, host_1_x, no longer "
                              "renews it")));
  inspection.report.reason = PausedText(inspection.snapshot.key, inspection.lease.record.paused);
  EXPECT_THAT(TableOf(inspection), Not(HasSubstr("Trouble:    pool default/web is paused")));
}

TEST(StatusTable, the_policy_is_named_by_its_label_and_by_the_id_that_scaled_last) {
  scaling::Inspection inspection = FullInspection();
  EXPECT_THAT(StatusTable(DescribePool(inspection, "batch-workers")),
              HasSubstr("\nPolicy:     batch-workers (p1, scaled at 2026-03-01T11:54:00Z)\n"));
  EXPECT_EQ(StatusDocument(DescribePool(inspection, "batch-workers"))["policy"], "batch-workers");
  inspection.lease.record.policy.reset();
  EXPECT_THAT(StatusTable(DescribePool(inspection, "batch-workers")),
              HasSubstr("\nPolicy:     batch-workers\n"));
  EXPECT_THAT(StatusTable(DescribePool(inspection)), Not(HasSubstr("Policy:")));
}

TEST(StatusTable, C7_a_protected_vm_is_marked_and_its_story_says_by_what) {
  World world;
  world.With(Vm("web-a").Joined().Protected()).With(Node("web-a"));
  world.With(Vm("web-b").Joined()).With(Node("web-b").Meta("harvester_protect", "true"));
  world.With(Vm("web-c").Joined()).With(Node("web-c"));
  const std::string table = TableOf(world);
  EXPECT_THAT(table, AllOf(HasSubstr("web-a  ready, protected"),
                           HasSubstr("web-b  ready, protected"), HasSubstr("web-c  ready    ")));
  EXPECT_THAT(Story(Describe(world), "web-a"), HasSubstr("Protected:  by its annotation\n"));
  EXPECT_THAT(Story(Describe(world), "web-b"),
              HasSubstr("Protected:  by its node's meta harvester_protect\n"));
  world.Raw().vms[0].vm.Change().protect = {.until = scaling::kNow + minutes(5)};
  EXPECT_EQ(Json(world)["vms"][0]["protected_by"], "its annotation, until 2026-03-01T12:05:00Z");
  EXPECT_EQ(Json(world)["vms"][1]["protected"], false) << "as before: by its annotation";
  EXPECT_EQ(Json(world)["vms"][2]["protected_by"], "");
}

TEST(StatusTable, C18_a_drained_vm_that_is_held_says_by_what_and_until_when) {
  World world;
  world.With(Vm("web-a").Joined().Marked()).With(Node("web-a").Drained("web-a")).Idle("web-a");
  world.Raw().vms[0].vm.Change().holds = {"vpn"};
  EXPECT_THAT(
      TableOf(world),
      AllOf(HasSubstr("Under way:  web-a: removal (scale-in): node web-a"),
            HasSubstr("is drained, and it is held by vpn, until 2026-03-01T12:15:00Z at the "
                      "latest\n"),
            Not(HasSubstr("Trouble:"))));
  world.Raw().vms[0].vm.Change().mark->marked_at = scaling::kNow - minutes(20);
  world.Raw().vms[0].held_for = minutes(5);
  EXPECT_THAT(TableOf(world),
              HasSubstr("until 2026-03-01T12:10:00Z at the latest; a restart of the "
                        "plugin begins that time anew\n"));
  world.Raw().vms[0].held_for = minutes(15);
  EXPECT_THAT(TableOf(world), HasSubstr("Trouble:    web-a: node web-a"));
}

TEST(StatusTable, R1_a_replacement_names_both_vms) {
  World world;
  world.With(Vm("web-a").Joined()).With(Node("web-a"));
  world.With(Vm("web-b").Age(minutes(1)).Replaces("web-a", {scaling::ReplaceKind::kDrifted}));
  EXPECT_THAT(TableOf(world), AllOf(HasSubstr("Ready:      yes\n"),
                                    HasSubstr("Under way:  web-b: it takes the place of web-a "
                                              "(drifted) once it is ready\n"),
                                    Not(HasSubstr("Trouble:"))));
}

TEST(StatusTable, R1_only_the_removal_of_the_replaced_vm_is_called_a_replacement) {
  World world;
  world.With(Vm("web-a").Joined().Marked()).With(Node("web-a"));
  world.With(Vm("web-b").Joined().Replaces("web-a", {scaling::ReplaceKind::kDrifted}))
      .With(Node("web-b"));
  world.With(Vm("web-c").Joined().Marked()).With(Node("web-c"));
  const std::string table = TableOf(world);
  EXPECT_THAT(table, HasSubstr("Under way:  web-a: replacement by web-b (drifted): "));
  EXPECT_THAT(table, HasSubstr("Under way:  web-c: removal (scale-in): "));
}

TEST(VmStory, T1_names_no_row_and_no_step) {
  World world;
  world.With(Vm("web-a").Joined().Marked()).With(Node("web-a"));
  const std::string story = Story(Describe(world), "web-a");
  EXPECT_THAT(story, AllOf(HasSubstr("Next step:  start the drain of its node: "),
                           Not(HasSubstr("rule")), Not(HasSubstr("start-drain"))));
}

TEST(StatusTable, C17_a_vm_that_has_registered_says_since_when_and_why_it_is_not_ready) {
  World world;
  world.Policy().ready_drivers = {"docker"};
  world.With(Vm("web-a").Age(minutes(6)).Registered())
      .With(Node("web-a").Driver("docker", false, "no daemon").Driver("exec", true));
  const std::string why =
      "its node node-web-a registered at 2026-03-01T11:10:00Z, but its driver docker is not "
      "healthy: no daemon";
  EXPECT_THAT(TableOf(world), HasSubstr("Trouble:    web-a: it is not ready yet: " + why));
  EXPECT_THAT(
      Story(Describe(world), "web-a"),
      AllOf(HasSubstr("State:      registered\n"), HasSubstr("Registered: 2026-03-01T11:10:00Z\n"),
            HasSubstr("Ready by:   2026-03-01T12:09:00Z\n"),
            HasSubstr("Not ready:  its driver docker is not healthy: no daemon\n"),
            HasSubstr("Drivers:    docker not healthy: no daemon; exec healthy\n")));
  const nlohmann::json vm = Json(world)["vms"][0];
  EXPECT_EQ(vm["not_ready"], "its driver docker is not healthy: no daemon");
  EXPECT_EQ(vm["ready_at"], nullptr);
  EXPECT_EQ(vm["node"]["drivers"]["docker"]["healthy"], false);
}

TEST(StatusStory, R1_names_the_vm_whose_place_a_new_one_takes_and_why) {
  World world;
  world.With(Vm("web-a").Joined())
      .With(Node("web-a"))
      .With(
          Vm("web-b").Age(minutes(1)).Replaces("web-a", {scaling::ReplaceKind::kDrifted, "image"}));
  EXPECT_THAT(Story(Describe(world), "web-b"),
              AllOf(HasSubstr("State:      replacement, not part of the count\n"),
                    HasSubstr("Replaces:   web-a (drifted: image)\n")));
  EXPECT_EQ(Json(world)["vms"][1]["replaces"], "web-a");
  EXPECT_EQ(Json(world)["count"], 1);
}

TEST(StatusTable, R2_says_what_is_to_be_replaced_and_until_when_that_waits) {
  World world;
  world.Policy().expire_after = std::chrono::hours(2);
  world.With(Vm("web-a").Joined().Age(std::chrono::hours(3))).With(Node("web-a"));
  world.With(Vm("web-b").Joined().Age(std::chrono::hours(4))).With(Node("web-b"));
  EXPECT_THAT(TableOf(world), HasSubstr("To replace: web-b (expired), web-a (expired)\n"))
      << "the next one first";
  world.Policy().replacement_window = config::CronWindow::Parse("0 2 * * 1-5 4h").value();
  EXPECT_THAT(TableOf(world),
              HasSubstr("To replace: web-b (expired), web-a (expired); waits: outside of "
                        "replacement_window, which opens at 2026-03-02T02:00:00Z\n"));
}

TEST(StatusTable, R5_says_why_the_replacement_has_stopped) {
  World world;
  scaling::Inspection inspection = Inspect(world);
  EXPECT_THAT(TableOf(inspection), testing::Not(HasSubstr("replacement of VMs")));
  inspection.lease.record.replacement = harvester::StoppedReplacement{
      .vm = "web-b", .template_hash = "v2:1", .why = "it has not joined"};
  EXPECT_THAT(TableOf(inspection), HasSubstr("VM web-b was not ready in time: it has not joined"));
  inspection.current_template.hash = "v2:2";  // it goes on with another VM spec
  EXPECT_THAT(TableOf(inspection), testing::Not(HasSubstr("replacement of VMs")));
}

TEST(StatusTable,
     says_that_nomad_cannot_be_read_although_the_pool_is_not_ready_for_another_reason) {
  World world;
  world.With(Vm("web-a").Joined()).NomadUnreadable();
  scaling::Inspection inspection = Inspect(world);
  inspection.report.reason = "a Scale is open on the pool";
  EXPECT_THAT(TableOf(inspection), HasSubstr("\nTrouble:    Nomad cannot be read: no leader\n"));
}

TEST(StatusTable, says_unknown_where_nomad_cannot_be_read) {
  World world;
  world.With(Vm("web-a").Joined()).With(Vm("web-b").Joined()).NomadUnreadable();
  // From a list that was read before Nomad became unreadable.
  world.With(Node("other")).With(Node("web-a"));
  EXPECT_EQ(TableOf(world),
            "Pool:       default/web\n"
            "Ready:      no: Nomad cannot be read: no leader\n"
            "Count:      2\n"
            "Lease:      none yet\n"
            "\n"
            "VM     STATE  AGE  HOST  NODE  MARK\n"
            "web-a  ready  1h   -     -     -\n"
            "web-b  ready  1h   -     -     -\n");
  const nlohmann::json json = Json(world);
  EXPECT_EQ(json["warning"], "");
  EXPECT_EQ(json["vms"][0]["link"], "unknown");
  EXPECT_EQ(json["vms"][0]["link_explanation"], "");
  EXPECT_TRUE(json["vms"][0]["node"].is_null());
  EXPECT_FALSE(json["counters"].contains("lost"));
  EXPECT_FALSE(json["counters"].contains("unlinked"));
  EXPECT_TRUE(json["unlinked_nodes"].empty());
}

TEST(StatusTable, removes_control_sequences) {
  World world;
  Vm vm("web-a");
  world.With(vm.Joined());
  world.Raw().vms[0].vm.Change().printable_status = "\x1b[2Jgone\n";
  const std::string text = TableOf(world, StatusDetail::kWide);
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, HasSubstr("\\x1b[2Jgone\\n"));
}

// S1, S2: the order in which a VM's state is decided.
TEST(VmState, names_the_state_of_a_vm) {
  World world;
  world.With(Vm("broken").Age(minutes(20)));
  world.With(Vm("created").NoTimeout());
  world.With(Vm("deleting").Joined().Terminating());
  world.With(Vm("draining").Joined().Marked()).With(Node("draining").Draining("draining"));
  world.With(Vm("lost").Joined());
  world.With(Vm("pending").Age(minutes(1)));
  world.With(Vm("ready").Joined()).With(Node("ready"));
  world.With(Vm("registered").Age(minutes(1)).Registered()).With(Node("registered").Initializing());
  world.With(Vm("stopped").Joined().Stopped()).With(Node("stopped").Down());
  world.With(Vm("stuck").Joined().Terminating());
  world.Raw().vms.back().vm.Change().deleted_at = scaling::kNow - minutes(60);
  world.With(Vm("unmanaged").Joined().Unmanaged());
  world.With(Vm("unready").Joined()).With(Node("unready").Status(nomad::NodeStatus::kDisconnected));
  const nlohmann::json view = Json(world);
  EXPECT_EQ(view["vms"].size(), 12U);
  for (const nlohmann::json& vm : view["vms"]) EXPECT_EQ(vm["state"], vm["name"]);
}

}  // namespace
}  // namespace nomad_harvester::cli
