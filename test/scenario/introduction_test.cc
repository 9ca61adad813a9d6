// SPDX-License-Identifier: Apache-2.0
//
// Pools whose VMs need an introduction token of Nomad before they may register.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/base/encoding.h"
#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/time.h"

#include "harness.h"
#include "operator.h"
#include "vm_facts.h"

namespace nomad_harvester::scenario {
namespace {

using simulator::Introduction;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kTokenBegins[] = "eyJhbGci";
constexpr char kUserData[] =
    "#cloud-config\nwrite_files:\n- path: /opt/nomad/data/client/intro_token.jwt\n"
    "  content: \"{{nomad_intro_token}}\"\n- path: /etc/nomad.d/nomad.hcl\n  content: |\n"
    "    name = \"{{vm_name}}\"\n    node_class = \"{{node_class}}\"\n";

// A pool whose VMs join by tokens. The bystanders have joined before.
struct Introducing : Harness {
  explicit Introducing(const simulator::Options& options = {},
                       Introduction introduction = Introduction::kStrict,
                       const std::string& mode = "required")
      : Harness(options) {
    cluster.SetIntroduction(introduction);
    policy["nomad_intro_token"] = mode;
    policy["join_timeout"] = "90m";
    policy["user_data"] = kUserData;
  }
};

int Minted(const Harness& h) {
  return h.cluster.RequestCount(System::kNomad, "update", "introduction");
}

std::string UserData(const json& secret) {
  return base::Base64Decode(base::GetString(*base::FindMember(secret, "data"), "userdata"))
      .value_or("");
}

// Of all objects and of the log, only the data of the Secrets may hold a token.
void ExpectNoTokenOutsideSecrets(const Harness& h) {
  for (const auto& objects : {h.Vms(), h.Leases()}) {
    for (const json& object : objects) {
      EXPECT_THAT(object.dump(), Not(HasSubstr(kTokenBegins)));
    }
  }
  for (json secret : h.Secrets()) {
    secret.erase("data");
    EXPECT_THAT(secret.dump(), Not(HasSubstr(kTokenBegins)));
  }
  EXPECT_THAT(h.Transcript(), Not(HasSubstr(kTokenBegins)));
}

TEST(IntroTokens, let_the_vms_of_a_pool_join_a_nomad_that_enforces_introduction) {
  Introducing h;
  h.Reach(3);
  h.CheckAtRest(3);
  EXPECT_EQ(Minted(h), 4);  // one tells whether Nomad has tokens
  for (const json& secret : h.Secrets()) {
    EXPECT_FALSE(AnnotationOf(secret, Key("intro-token-expires")).empty());
    EXPECT_THAT(UserData(secret), HasSubstr(kTokenBegins));
  }
  ExpectNoTokenOutsideSecrets(h);
}

TEST(IntroTokens, C15_without_the_key_no_vm_joins_a_strict_nomad_and_its_end_says_why) {
  Harness h;
  h.cluster.SetIntroduction(Introduction::kStrict);
  EXPECT_THAT(h.Scale(1).ToString(), HasSubstr("nomad_intro_token"));
  h.Converge(0);
  h.CheckAtRest(0);
}

TEST(IntroTokens, of_mode_auto_are_empty_where_nomad_has_none_and_one_warning_says_so) {
  Introducing h({}, Introduction::kNone, "auto");
  h.Reach(1);
  h.Reach(2);
  h.CheckAtRest(2);
  EXPECT_THAT(UserData(h.Secrets().front()), HasSubstr("content: \"\""));
  EXPECT_EQ(AnnotationOf(h.Secrets().front(), Key("intro-token-expires")), "");
  EXPECT_EQ(h.log->Count("Nomad has no introduction tokens", log::Level::kWarn), 1U);
}

TEST(IntroTokens, C2_that_are_required_refuse_growth_without_a_trace_where_nomad_has_none) {
  Introducing h({}, Introduction::kNone);
  const absl::Status scaled = h.Scale(2);
  EXPECT_EQ(scaled.code(), absl::StatusCode::kUnimplemented) << scaled;
  EXPECT_THAT(scaled.ToString(), HasSubstr("nomad_intro_token: make an introduction token"));
  EXPECT_TRUE(h.Secrets().empty());
  h.CheckAtRest(0);
}

TEST(IntroTokens, C2_without_the_right_refuse_growth_without_a_trace_in_both_modes) {
  for (const std::string mode : {"auto", "required"}) {
    Introducing h({}, Introduction::kStrict, mode);
    h.cluster.Refuse({.system = System::kNomad, .resource = "introduction"});
    const absl::Status scaled = h.Scale(2);
    EXPECT_EQ(scaled.code(), absl::StatusCode::kPermissionDenied) << scaled;
    EXPECT_THAT(scaled.ToString(), HasSubstr("node { policy = \"write\" }"));
    EXPECT_TRUE(h.Secrets().empty());
    h.CheckAtRest(0);
  }
}

TEST(IntroTokens, C2_are_not_asked_for_where_harvester_refuses_the_vm) {
  Introducing h;
  h.cluster.Refuse({.verb = "try",
                    .resource = "virtualmachines",
                    .kind = simulator::Refusal::kAnswer,
                    .status = 403,
                    .text = "a webhook refuses it"});
  EXPECT_FALSE(h.Scale(1).ok());
  EXPECT_EQ(Minted(h), 0) << "only a creation makes tokens";
  h.CheckAtRest(0);
}

TEST(IntroTokens, L10_of_a_paused_pool_are_not_replaced_until_the_pause_ends) {
  Introducing h({.boot_time = minutes(50)});
  ASSERT_TRUE(h.Accept(1).ok());
  Operator person(h);
  ASSERT_TRUE(person.Pause(base::Hold{.always = true}).ok());
  h.cluster.ResetCounters();
  h.Tick(minutes(30));
  EXPECT_EQ(Minted(h), 0);
  ASSERT_TRUE(person.Pause(std::nullopt).ok());
  h.Tick(minutes(20));
  EXPECT_GE(Minted(h), 1);
  h.WaitUntilReady();
  h.CheckAtRest(1);
}

TEST(IntroTokens, L1_whose_renewal_is_refused_fail_no_vm_that_boots_in_time) {
  Introducing h({.boot_time = minutes(25)});
  const base::MonoTime made = h.clock.Now() + minutes(5);
  h.Inject(Fault::Answer(403, "Permission denied"), [&](const RequestInfo& request) {
    return request.resource == "introduction" && h.clock.Now() > made;
  });
  h.Reach(1);
  h.CheckAtRest(1);
}

TEST(IntroTokens, C3_of_a_secret_that_waited_for_its_vm_longer_than_they_last_are_replaced) {
  Introducing h({.boot_time = seconds(10), .longest_token = seconds(20)});
  // Harvester is being upgraded: its webhook is down.
  const base::MonoTime mended = h.clock.Now() + seconds(40);
  h.Inject(Fault::Answer(500, R"({"kind":"Status","message":"failed calling webhook \"x\""})"),
           [&](const RequestInfo& request) {
             return request.verb == "create" && request.resource == "virtualmachines" &&
                    h.clock.Now() < mended;
           });
  h.Reach(1);
  h.CheckAtRest(1);
}

TEST(IntroTokens, P3_that_a_webhook_quotes_with_the_secret_are_told_to_no_one) {
  Introducing h;
  std::string quoted;
  h.cluster.SetFaultHook([&](const RequestInfo& request) {
    if (request.verb != "create" || request.resource != "secrets") return Fault::None();
    quoted = json::parse(request.body)["data"]["userdata"].get<std::string>();
    const json status = {
        {"kind", "Status"},
        {"code", 400},
        {"reason", "BadRequest"},
        {"message", "admission webhook \"x\" denied the request: \"" + quoted + "\" is not good"}};
    return Fault::Answer(400, status.dump());
  });
  const absl::Status scaled = h.Scale(1);
  EXPECT_THAT(scaled.ToString(), HasSubstr("denied the request: \"(data)\" is not good"));
  std::string all = scaled.ToString() + h.Transcript();
  for (const json& lease : h.Leases()) all += lease.dump();
  EXPECT_EQ(all.find(quoted.substr(0, 100)), std::string::npos);
  EXPECT_THAT(all, Not(HasSubstr(kTokenBegins)));
}

TEST(UserData, P3_that_a_webhook_quotes_decoded_is_in_no_error_log_or_lease) {
  Harness h;
  const std::string line = "- [sh, -c, 'echo hunter2-of-{{pool}} | passwd --stdin root']";
  h.policy["user_data"] = "#cloud-config\nruncmd:\n" + line + "\n- [reboot]\n";
  std::string text;
  h.cluster.SetFaultHook([&](const RequestInfo& request) {
    if (request.verb != "create") return Fault::None();
    if (request.resource == "secrets") text = UserData(json::parse(request.body));
    if (request.resource != "virtualmachines") return Fault::None();
    const json status = {
        {"kind", "Status"},
        {"code", 400},
        {"reason", "BadRequest"},
        {"message", "admission webhook \"x\" denied the request: not allowed: " + text}};
    return Fault::Answer(400, status.dump());
  });
  const absl::Status scaled = h.Scale(1);
  EXPECT_THAT(scaled.ToString(), HasSubstr("denied the request: not allowed: #cloud-config"));
  std::string all = scaled.ToString() + h.Transcript();
  for (const json& lease : h.Leases()) all += lease.dump();
  EXPECT_THAT(all, HasSubstr("last-error"));
  EXPECT_THAT(all, Not(HasSubstr("hunter2")));
}

TEST(IntroTokens, C2_whose_end_is_beyond_all_times_refuse_growth) {
  Introducing h({}, Introduction::kWarn);
  h.cluster.SetFaultHook([](const RequestInfo& request) {
    if (request.resource != "introduction") return Fault::None();
    const std::string claims =
        base::Base64Encode(R"({"exp":18446744073709551615,"iat":1767225600})");
    return Fault::Answer(200, json{{"JWT", "e30." + claims + ".c2ln"}}.dump());
  });
  EXPECT_THAT(h.Scale(1).ToString(), HasSubstr("beyond all times"));
  EXPECT_LE(Minted(h), 4);
  EXPECT_TRUE(h.Secrets().empty());
}

TEST(IntroTokens, C2_for_which_a_secret_has_no_room_refuse_growth_before_anything_is_made) {
  Introducing h;
  h.policy["user_data"] =
      std::string(kUserData) + "# " + std::string(1024 * 1024 - sizeof(kUserData) - 60, 'x');
  EXPECT_THAT(h.Scale(1).ToString(), HasSubstr("but a Secret holds 1048576"));
  EXPECT_EQ(Minted(h), 0);
  EXPECT_TRUE(h.Secrets().empty());
}

TEST(IntroTokens, C13_are_not_made_by_a_dry_run) {
  Introducing h;
  h.policy["dry-run"] = "true";
  ASSERT_TRUE(h.Scale(2).ok());
  EXPECT_EQ(Minted(h), 0);
}

TEST(IntroTokens, that_end_while_a_slow_clone_runs_are_replaced) {
  Introducing h({.boot_time = minutes(50)});
  h.Reach(1);
  h.CheckAtRest(1);
  EXPECT_EQ(Minted(h), 1 + 1 + 3);  // after 15, 30 and 45 minutes
  ExpectNoTokenOutsideSecrets(h);
}

TEST(IntroTokens, that_nomad_cuts_are_replaced_as_often_as_it_takes) {
  Introducing h({.boot_time = minutes(12), .longest_token = minutes(2)});
  h.Reach(1);
  h.CheckAtRest(1);
  EXPECT_LE(Minted(h), 15);
}

TEST(IntroTokens, C10_of_a_vm_whose_process_was_killed_are_replaced_by_the_next) {
  Introducing h({.boot_time = minutes(50)});
  ASSERT_TRUE(h.Accept(1).ok());
  h.Restart();
  const int before = Minted(h);
  h.Tick(minutes(55));
  EXPECT_EQ(Minted(h) - before, 3);
  h.WaitUntilReady();
  h.CheckAtRest(1);
}

TEST(IntroTokens, C10_whose_end_a_wrong_clock_wrote_are_replaced_by_the_next_process) {
  Introducing h({.boot_time = minutes(50)});
  ASSERT_TRUE(h.Accept(1).ok());
  json secret = h.Secrets().at(0);
  secret["metadata"]["annotations"][Key("intro-token-expires")] =
      base::FormatRfc3339(h.clock.WallNow() + hours(5));
  ASSERT_TRUE(h.cluster.PutObject(secret));
  h.Restart();
  h.Tick(minutes(55));
  h.WaitUntilReady();
  h.CheckAtRest(1);
}

TEST(IntroTokens, C10_a_kill_between_secret_and_vm_leaves_nothing_that_the_next_scale_cannot_use) {
  Introducing h;
  h.ScaleAndDieAt(1, "create", "virtualmachines", false);
  EXPECT_EQ(h.Secrets().size(), 1U);
  h.Restart();
  h.Converge(1);
  EXPECT_EQ(h.Secrets().size(), 1U);
  h.CheckAtRest(1);
}

TEST(IntroTokens, C3_a_secret_whose_reply_was_lost_is_used_with_the_token_that_it_has) {
  Introducing h;
  // The next attempt at the VM comes with another token.
  const base::MonoTime mended = h.clock.Now() + seconds(40);
  bool stored = false;
  h.cluster.SetFaultHook([&](const RequestInfo& request) {
    if (request.resource != "secrets" || request.verb == "list" || h.clock.Now() >= mended) {
      return Fault::None();
    }
    if (request.verb == "create" && !std::exchange(stored, true)) return Fault::DropReply();
    return Fault::Answer(503, "");
  });
  ASSERT_TRUE(h.Scale(1).ok()) << h.Transcript();
  EXPECT_TRUE(stored);
  EXPECT_GE(Minted(h), 3);
  EXPECT_EQ(h.Secrets().size(), 1U);
  h.WaitUntilReady();
  h.CheckAtRest(1);
}

TEST(IntroTokens, L2_that_cannot_be_replaced_cost_their_vm_alone_and_few_requests) {
  Introducing h({.boot_time = minutes(50)}, Introduction::kWarn);
  ASSERT_TRUE(h.Accept(2).ok());
  h.cluster.Refuse({.system = System::kNomad, .resource = "introduction"});
  h.Tick(minutes(10));
  h.cluster.ResetCounters();
  h.Tick(minutes(30));
  EXPECT_LE(Minted(h), 60);
  // S3's two lists per tick, and a round a minute at most.
  EXPECT_LE(h.cluster.RequestCount(), 180 * 2 + 30 * 20);
}

TEST(IntroTokens, and_those_that_replace_them_are_for_the_pool_that_the_policy_names) {
  Introducing h({.boot_time = minutes(50)});
  h.policy["node_pool"] = "gpu";
  h.policy["user_data"] = std::string(kUserData) + "    node_pool = \"{{node_pool}}\"\n";
  h.Reach(1);
  h.CheckAtRest(1);
}

TEST(IntroTokens, C2_that_tell_whether_nomad_has_any_end_at_once) {
  Introducing h;
  std::vector<std::string> bodies;
  h.OnEachRequest([&](const RequestInfo& request) {
    if (request.resource == "introduction") bodies.push_back(request.body);
  });
  ASSERT_TRUE(h.Scale(1).ok()) << h.Transcript();
  ASSERT_EQ(bodies.size(), 2U);
  EXPECT_THAT(bodies[0], HasSubstr(R"("TTL":"1s")"));
  EXPECT_THAT(bodies[1], HasSubstr(R"("TTL":"30m0s")"));
}

TEST(IntroTokens, L7_that_a_process_has_made_cost_nothing_until_half_their_time_is_over) {
  Introducing h({.boot_time = minutes(12)});
  ASSERT_TRUE(h.Scale(1).ok()) << h.Transcript();
  EXPECT_EQ(h.cluster.RequestCount(System::kHarvester, "get", "secrets"), 0);
}

TEST(IntroTokens, R8_a_vm_that_waited_long_for_its_start_boots_with_a_new_one) {
  Introducing h;
  h.policy["replace_drifted"] = "rolling";
  h.policy["max_surge"] = "0";
  h.policy["max_unavailable"] = "1";
  h.policy["node_drain_deadline"] = "3h";
  ASSERT_TRUE(h.Scale(1).ok()) << h.Transcript();
  h.Tick(minutes(11));
  const std::string old = h.VmNames().at(0);
  ASSERT_TRUE(h.cluster.HangDrain(h.NodeOf(old)));
  h.policy["memory_request"] = "24Gi";
  std::vector<std::string> writes;
  h.OnEachRequest([&](const RequestInfo& request) {
    const bool starts = request.body.find("runStrategy") != std::string::npos;
    if (request.name == old && request.verb == "delete") writes.emplace_back("delete the old one");
    if (request.resource == "secrets" && request.verb == "patch") writes.emplace_back("new token");
    if (request.verb == "patch" && starts) writes.emplace_back("start");
  });
  h.Tick(minutes(250));
  const auto deleted = std::find(writes.begin(), writes.end(), "delete the old one");
  EXPECT_THAT(std::vector<std::string>(deleted, writes.end()),
              ElementsAre("delete the old one", "new token", "start"));
  EXPECT_THAT(h.VmNames(), Not(testing::Contains(old))) << h.Transcript();
  h.CheckAtRest(1);
}

}  // namespace
}  // namespace nomad_harvester::scenario
