// SPDX-License-Identifier: Apache-2.0
#include "execution/creation.h"

#include "nomad_harvester/base/encoding.h"
#include "nomad_harvester/scaling/template_check.h"

#include "pool_fixture.h"
#include "support/scoped_temp_dir.h"

namespace nomad_harvester::scaling {
namespace {

using simulator::Fault;
using support::IsOk;
using support::StatusIs;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::Not;
using testing::StartsWith;
using testing::UnorderedElementsAre;

class CreationTest : public PoolFixture {
 protected:
  absl::StatusOr<CreationPlan> Prepare() {
    Forget();
    return PrepareCreation(77, "policy-1");
  }
  absl::Status Create(const CreationPlan& plan, const std::string& action = "act") {
    Forget();
    const auto created =
        CreateVm(context(), Deps(), plan, {.name = "web-a", .action_id = action}, clock_.WallNow());
    if (created.ok()) owned_ = OwnSecret(context(), Deps(), *created);
    return created.status();
  }
  absl::Status Clear() {
    Forget();
    return ClearLeftoverSecret(context(), Deps(), "web-a");
  }
  void PutKeyPair() {
    cluster_.PutObject({{"apiVersion", "harvesterhci.io/v1beta1"},
                        {"kind", "KeyPair"},
                        {"metadata", {{"namespace", "default"}, {"name", "ops"}}},
                        {"spec", {{"publicKey", "ssh-ed25519 AAAA ops"}}}});
  }

  absl::Status owned_;
};

TEST_F(CreationTest, C2_the_preflight_reads_what_the_policy_names_and_tries_one_vm) {
  PutKeyPair();
  policy_.ssh_keys = {{.ns = "default", .name = "ops"}};
  const auto plan = Prepare();
  ASSERT_THAT(plan, IsOk());
  EXPECT_THAT(Effects(), IsEmpty());
  EXPECT_THAT(Sent(), UnorderedElementsAre("get virtualmachineimages", "list virtualmachineimages",
                                           "get network-attachment-definitions", "get keypairs",
                                           "list resourcequotas", "try virtualmachines"));
  EXPECT_EQ(Last(), "try virtualmachines");
  EXPECT_THAT(cluster_.Vms(), IsEmpty());
  EXPECT_EQ(plan->vm_spec.nodes.index, 77U);
  EXPECT_EQ(plan->vm_spec.join_timeout, "15m0s");
  EXPECT_THAT(plan->public_keys, ElementsAre("ssh-ed25519 AAAA ops"));
  EXPECT_EQ(plan->variables.at("policy_id"), "policy-1");
}

TEST_F(CreationTest, C2_an_error_names_the_key_of_the_policy_and_ends_the_preflight) {
  struct Case {
    std::string key;
    std::function<void()> spoil;
    bool tried = false;
  };
  const std::vector<Case> cases = {
      {"user_data_file", [&] { policy_.user_data_file = "/nowhere/at/all"; }},
      {"image", [&] { policy_.image.name = "plan9"; }},
      {"image: default/ubuntu-24.04 cannot be used",
       [&] { cluster_.SetImageReady("default/ubuntu-24.04", false); }},
      {"disk_size", [&] { policy_.disk_bytes = 1; }},
      {"networks", [&] { policy_.networks[0].attachment.name = "vlan9"; }},
      {"ssh_keys", [&] { policy_.ssh_keys = {{.ns = "default", .name = "nobody"}}; }},
      {"user_data", [&] { policy_.user_data = "{{unknown}}"; }},
      {"network_data_file", [&] { policy_.network_data_file = "/nowhere/at/all"; }},
      {"network_data", [&] { policy_.network_data = "- a list"; }},
      {"user_data, network_data: 12288",
       [&] {
         policy_.user_data = "#cloud-config\n# " + std::string(600 * 1024, 'u');
         policy_.network_data = "version: 2 # " + std::string(600 * 1024, 'n');
       }},
      {"data_disks: storage class fast",
       [&] {
         policy_.data_disks = {{1 << 20, "fast", false}};
       }},
      {"priority_class: priority class low",
       [&] { policy_.machine["priority_class"] = std::string("low"); }},
      {"Harvester would refuse the VM", [&] { Next("try virtualmachines", Refused()); }, true}};
  const config::PoolPolicy good = policy_;
  for (const Case& c : cases) {
    policy_ = good;
    cluster_.SetImageReady("default/ubuntu-24.04", true);
    if (c.key == "user_data_file") policy_.user_data.reset();
    c.spoil();
    const auto plan = Prepare();
    ASSERT_FALSE(plan.ok()) << c.key;
    EXPECT_THAT(base::Message(plan.status()), StartsWith(c.key));
    EXPECT_EQ(Count("try virtualmachines"), c.tried ? 1U : 0U) << c.key;
    EXPECT_THAT(Effects(), IsEmpty()) << c.key;
  }
}

TEST_F(CreationTest, C2_a_webhook_that_is_down_has_refused_nothing) {
  Always(
      "try virtualmachines",
      Fault::Answer(500, R"({"kind":"Status","reason":"InternalError","message":"Internal error )"
                         R"(occurred: failed calling webhook \"validator.harvesterhci.io\""})"));
  const auto plan = Prepare();
  ASSERT_FALSE(plan.ok());
  EXPECT_THAT(base::Message(plan.status()), StartsWith("the trial creation of a VM failed"));
  EXPECT_THAT(base::Message(plan.status()), HasSubstr("failed calling webhook"));
}

TEST_F(CreationTest, C2_what_a_policy_does_not_name_is_not_read) {
  policy_.data_disks = {{1 << 20, "", false}};
  ASSERT_THAT(Prepare(), IsOk());
  EXPECT_EQ(Count("get storageclasses"), 0U) << "the default class is Harvester's to know";
  EXPECT_EQ(Count("get priorityclasses"), 0U);
  EXPECT_EQ(Count("get settings"), 0U);
}

TEST_F(CreationTest, C2_each_class_is_read_once_and_one_that_may_not_be_read_is_no_obstacle) {
  policy_.data_disks = {
      {1 << 20, "fast", false}, {1 << 20, "fast", true}, {1 << 20, "slow", false}};
  policy_.machine["priority_class"] = std::string("low");
  cluster_.Forbid("get", "storageclasses");
  cluster_.Forbid("get", "priorityclasses");
  const auto plan = Prepare();
  ASSERT_THAT(plan, IsOk());
  EXPECT_THAT(plan->unread_classes,
              ElementsAre("storage class fast", "storage class slow", "priority class low"));
  EXPECT_EQ(Count("get storageclasses"), 2U);
  EXPECT_EQ(Count("get priorityclasses"), 1U);
}

TEST_F(CreationTest, C2_a_disk_of_lvm_that_several_hosts_would_write_is_refused_with_the_cure) {
  cluster_.PutObject({{"apiVersion", "storage.k8s.io/v1"},
                      {"kind", "StorageClass"},
                      {"metadata", {{"name", "local"}}},
                      {"provisioner", "lvm.driver.harvesterhci.io"}});
  policy_.data_disks = {{std::int64_t{5} << 30, "local", true},
                        {std::int64_t{100} << 30, "local", false}};
  EXPECT_THAT(Prepare(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                  HasSubstr("data_disks: storage class local is one of LVM, whose "
                                            "volumes only one host can write: write "
                                            "100Gi@local:rwo")));
  EXPECT_EQ(Count("get storageclasses"), 1U);
  policy_.data_disks[1].read_write_once = true;
  EXPECT_THAT(Prepare(), IsOk());
}

TEST_F(CreationTest, gpus_are_given_as_the_version_of_harvester_takes_them) {
  policy_.gpus = {{"nvidia.com/A10", 1}};
  const auto newer = Prepare();
  ASSERT_THAT(newer, IsOk());
  EXPECT_EQ(Count("get settings"), 1U);
  EXPECT_TRUE(newer->vm_spec.gpus_are_host_devices);
  cluster_.PutObject({{"apiVersion", "harvesterhci.io/v1beta1"},
                      {"kind", "Setting"},
                      {"metadata", {{"name", "server-version"}}},
                      {"value", "v1.7.2"}});
  const auto older = Prepare();
  ASSERT_THAT(older, IsOk());
  EXPECT_FALSE(older->vm_spec.gpus_are_host_devices);
  EXPECT_EQ(older->vm_spec.template_hash, newer->vm_spec.template_hash)
      << "an upgrade of Harvester is no drift";
}

// Releases compare this value: VMs of a policy without newer keys must not observation drifted.
TEST_F(CreationTest, the_hash_of_a_policy_without_newer_keys_is_what_other_releases_make) {
  const auto plan = Prepare();
  ASSERT_THAT(plan, IsOk());
  EXPECT_EQ(plan->vm_spec.template_hash, "v2:146e6d623dc1f430");
}

TEST_F(CreationTest, every_key_of_the_machine_reaches_the_vm) {
  policy_ = config::ParsePoolPolicy([] {
              StringMap values = PolicyValues();
              values["data_disks"] = "1Gi";
              values["network_data"] = "version: 2 # {{vm_name}}";
              values["firmware"] = "uefi";
              values["host_spread"] = "off";
              values["node_selector"] = "disk=nvme";
              values["priority_class"] = "system-node-critical";
              values["cpu_model"] = "host-model";
              values["host_devices"] = "x.io/a";
              values["maintain_mode_strategy"] = "Shutdown";
              values["termination_grace_period"] = "5m";
              return values;
            }())
                .value();
  const auto plan = Prepare();
  ASSERT_THAT(plan, IsOk());
  ASSERT_THAT(Create(*plan), IsOk());
  const nlohmann::json vm = Body("create virtualmachines");
  const nlohmann::json& guest = vm["spec"]["template"]["spec"];
  EXPECT_EQ(guest["domain"]["devices"]["disks"].size(), 3U);
  EXPECT_EQ(guest["domain"]["devices"]["hostDevices"].size(), 1U);
  EXPECT_EQ(guest["domain"]["firmware"]["bootloader"]["efi"]["secureBoot"], false);
  EXPECT_EQ(guest["domain"]["cpu"]["model"], "host-model");
  EXPECT_TRUE(guest["affinity"].contains("nodeAffinity"));
  EXPECT_FALSE(guest["affinity"].contains("podAntiAffinity"));
  EXPECT_EQ(guest["priorityClassName"], "system-node-critical");
  EXPECT_EQ(guest["terminationGracePeriodSeconds"], 300);
  EXPECT_EQ(vm["metadata"]["labels"]["harvesterhci.io/maintain-mode-strategy"], "Shutdown");
  const auto network_data =
      base::Base64Decode(base::GetString(cluster_.Secrets().at(0)["data"], "networkdata"));
  ASSERT_THAT(network_data, IsOk());
  EXPECT_EQ(*network_data, "version: 2 # web-a");
}

TEST_F(CreationTest, S3_the_check_of_an_inline_template_finds_what_rendering_it_would) {
  const auto check = [&](const char* key, const std::string& text) {
    return CheckTemplate(*config_, policy_, key, text);
  };
  EXPECT_THAT(check("user_data", "#cloud-config\nx: {{vm_name}} {{vm_uuid}} {{short_id}} {{zone}}"),
              IsOk());
  EXPECT_THAT(check("user_data", "{{vmname}}"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("line 1, column 1")));
  EXPECT_THAT(check("user_data", "#cloud-config\na: [b"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not valid YAML")));
  EXPECT_THAT(check("network_data", "version: 2"), IsOk());
  EXPECT_THAT(check("network_data", "- 2"), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(check("user_data", "#!/bin/sh"), IsOk());
  policy_.ssh_keys = {{.ns = "default", .name = "ops"}};
  EXPECT_THAT(check("user_data", "#!/bin/sh"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("ssh_keys need user data")));
}

TEST_F(CreationTest, S3_what_the_environment_holds_is_not_the_policys) {
  const auto check = [&](const std::string& text) {
    return CheckTemplate(*config_, policy_, "user_data", text);
  };
  EXPECT_THAT(check("{{env.HARVESTER_TEMPLATE_X}}"), IsOk()) << "only growth needs it";
  config_->template_environment["HARVESTER_TEMPLATE_X"] = "a: [b";
  EXPECT_THAT(check("#cloud-config\n{{env.HARVESTER_TEMPLATE_X}}"), IsOk());
  EXPECT_THAT(check("{{env.HARVESTER_TEMPLATE_X}} {{vmname}}"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("vmname")));
  EXPECT_THAT(check("{{env.HOME}}"), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(CreationTest, C3_an_identity_follows_from_name_and_action_alone) {
  const harvester::VmIdentity one = IdentityFor("web-a", "act");
  const harvester::VmIdentity again = IdentityFor("web-a", "act");
  EXPECT_EQ(one.firmware_uuid, again.firmware_uuid);
  EXPECT_EQ(one.claim_random, again.claim_random);
  EXPECT_THAT(one.firmware_uuid, MatchesRegex("[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab]"
                                              "[0-9a-f]{3}-[0-9a-f]{12}"));
  EXPECT_TRUE(
      harvester::IsClaimNameOf(harvester::ClaimName("web-a", 0, one.claim_random), "web-a"));
  for (const harvester::VmIdentity& other : {IdentityFor("web-a", "b"), IdentityFor("b", "act")}) {
    EXPECT_NE(one.firmware_uuid, other.firmware_uuid);
    EXPECT_NE(one.claim_random, other.claim_random);
  }
}

TEST_F(CreationTest, C3_a_creation_is_the_secret_then_the_vm_then_the_owner) {
  policy_.user_data = "#cloud-config\nx: {{vm_name}} {{short_id}} {{action_id}} {{vm_uuid}}\n";
  const auto plan = Prepare();
  ASSERT_THAT(plan, IsOk());
  ASSERT_THAT(Create(*plan), IsOk());
  EXPECT_THAT(owned_, IsOk());
  EXPECT_THAT(Sent(), ElementsAre("create secrets", "create virtualmachines", "patch secrets"));
  EXPECT_FALSE(Body("create secrets")["metadata"].contains("ownerReferences"));
  const nlohmann::json secret = cluster_.Secrets().at(0);
  EXPECT_EQ(secret["metadata"]["ownerReferences"][0]["uid"], UidOf("web-a"));
  const auto text = base::Base64Decode(base::GetString(secret["data"], "userdata"));
  ASSERT_THAT(text, IsOk());
  EXPECT_THAT(*text, HasSubstr("x: web-a a act " + IdentityFor("web-a", "act").firmware_uuid));
}

TEST_F(CreationTest, C3_a_lost_reply_to_any_of_the_three_writes_leaves_one_vm) {
  const auto plan = Prepare();
  ASSERT_THAT(plan, IsOk());
  for (const std::string write : {"create secrets", "create virtualmachines", "patch secrets"}) {
    Next(write, Fault::DropReply());
    EXPECT_THAT(Create(*plan), IsOk()) << write;
    EXPECT_THAT(owned_, IsOk()) << write;
  }
  EXPECT_EQ(cluster_.Vms().size(), 1U);
  EXPECT_EQ(cluster_.Secrets().size(), 1U);
}

TEST_F(CreationTest, C3_without_its_secret_no_vm_is_requested) {
  const auto plan = Prepare();
  ASSERT_THAT(plan, IsOk());
  Next("create secrets", Refused());
  EXPECT_THAT(Create(*plan), StatusIs(absl::StatusCode::kPermissionDenied));
  EXPECT_THAT(Sent(), ElementsAre("create secrets"));
  ASSERT_THAT(Create(*plan, "another"), IsOk());
  EXPECT_THAT(Create(*plan), StatusIs(absl::StatusCode::kAlreadyExists));
  EXPECT_EQ(Count("create virtualmachines"), 0U) << "the Secret is another action's";
}

TEST_F(CreationTest, C3_a_vm_that_is_refused_leaves_its_secret_without_an_owner) {
  const auto plan = Prepare();
  ASSERT_THAT(plan, IsOk());
  Next("create virtualmachines", Refused());
  EXPECT_THAT(Create(*plan), StatusIs(absl::StatusCode::kPermissionDenied));
  EXPECT_THAT(Sent(), ElementsAre("create secrets", "create virtualmachines"));
  EXPECT_EQ(cluster_.Secrets().size(), 1U);
}

TEST_F(CreationTest, P3_user_data_that_a_webhook_quotes_is_told_to_no_one) {
  policy_.user_data =
      "#cloud-config\nchpasswd: {expire: false}\npassword: hunter2-of-{{vm_name}}\n";
  const auto plan = Prepare();
  ASSERT_THAT(plan, IsOk());
  const std::string line = "password: hunter2-of-web-a";
  for (const std::string write : {"create secrets", "create virtualmachines", "patch secrets"}) {
    const nlohmann::json status = {
        {"kind", "Status"},
        {"code", 400},
        {"reason", "BadRequest"},
        {"message", "admission webhook \"x\" denied the request: bad line " + line + " in web-a"}};
    Next(write, Fault::Answer(400, status.dump()));
    const absl::Status created = Create(*plan);
    const std::string error = (created.ok() ? owned_ : created).ToString();
    EXPECT_THAT(error, HasSubstr("bad line REDACTED in web-a")) << write;
  }
}

TEST_F(CreationTest, C2_user_data_that_holds_a_credential_of_the_plugin_is_refused_by_its_key) {
  const std::string token = "a1b2c3d4-0000-4000-8000-123456789abc";
  const base::Secret credential(token, "nomad_token");
  policy_.user_data = "#cloud-config\nwrite_files:\n- {path: /etc/token, content: " + token + "}\n";
  const absl::Status refused = Prepare().status();
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kInvalidArgument,
                                AllOf(StartsWith("user_data: "), HasSubstr("(nomad_token)"),
                                      Not(HasSubstr(token)))));
  EXPECT_THAT(Effects(), IsEmpty());
  policy_.user_data = "#cloud-config\nruncmd: [\"{{env.HARVESTER_TEMPLATE_X}}\"]\n";
  config_->template_environment["HARVESTER_TEMPLATE_X"] = token;
  EXPECT_THAT(Prepare(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("nomad_token")));
}

TEST_F(CreationTest, C2_network_data_that_holds_a_credential_of_the_plugin_is_refused_likewise) {
  const std::string token = "a1b2c3d4-0000-4000-8000-123456789abc";
  const base::Secret credential(token, "nomad_token");
  policy_.network_data = "version: 2 # " + token;
  EXPECT_THAT(Prepare().status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(StartsWith("network_data: "), HasSubstr("(nomad_token)"),
                             Not(HasSubstr(token)))));
  EXPECT_THAT(Effects(), IsEmpty());
}

TEST_F(CreationTest, C2_a_file_is_no_excuse_for_an_introduction_token_that_no_template_uses) {
  const support::ScopedTempDir dir;
  policy_.intro_token = config::IntroToken::kRequired;
  policy_.network_data_file = dir.WriteFile("network.yaml", "version: 2\n");
  EXPECT_THAT(Prepare(), StatusIs(absl::StatusCode::kInvalidArgument,
                                  HasSubstr("no template contains {{nomad_intro_token}}")));
  dir.WriteFile("network.yaml", "version: 2 # {{nomad_intro_token}}\n");
  EXPECT_THAT(Prepare(), IsOk());
  policy_.intro_token = config::IntroToken::kOff;
  EXPECT_THAT(Prepare(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("network_data_file: it contains {{nomad_intro_token}}")));
}

TEST_F(CreationTest, C3_a_name_of_nomad_with_a_line_break_is_no_part_of_user_data) {
  policy_.user_data = "#cloud-config\nx: {{datacenter}}\n";
  policy_.datacenter = "dc1\nruncmd: [reboot]";
  EXPECT_THAT(Prepare(), StatusIs(absl::StatusCode::kInvalidArgument,
                                  AllOf(StartsWith("user_data: "), HasSubstr("{{datacenter}}"))));
  EXPECT_THAT(Effects(), IsEmpty());
}

TEST_F(CreationTest, C10_a_secret_without_its_owner_is_a_warning_and_no_error) {
  const auto plan = Prepare();
  ASSERT_THAT(plan, IsOk());
  Next("patch secrets", Refused());
  EXPECT_THAT(Create(*plan), IsOk());
  EXPECT_THAT(owned_, StatusIs(absl::StatusCode::kPermissionDenied));
  EXPECT_EQ(Logged("WARN The cloud-init Secret has no owner yet; the next Status sets it"), 1U);
}

TEST_F(CreationTest, C10_a_left_over_secret_is_deleted_by_uid_before_its_name_is_used_again) {
  EXPECT_THAT(Clear(), IsOk());
  EXPECT_THAT(Sent(), ElementsAre("get secrets"));
  const auto plan = Prepare();
  ASSERT_THAT(plan, IsOk());
  Next("create virtualmachines", Refused());
  EXPECT_FALSE(Create(*plan, "earlier").ok());
  const std::string uid = support::UidOf(cluster_.Secrets().at(0));
  EXPECT_THAT(Clear(), IsOk());
  EXPECT_THAT(Sent(), ElementsAre("get secrets", "get virtualmachines", "delete secrets"));
  EXPECT_EQ(Body("delete secrets")["preconditions"]["uid"], uid);
  EXPECT_THAT(cluster_.Secrets(), IsEmpty());
}

TEST_F(CreationTest, C10_a_secret_is_kept_while_its_vm_exists_or_that_cannot_be_read) {
  AddUnjoined("web-a");
  EXPECT_THAT(Clear(), IsOk());
  Next("get secrets", Failed());
  EXPECT_FALSE(Clear().ok());
  Next("get virtualmachines", Failed());
  EXPECT_FALSE(Clear().ok());
  EXPECT_EQ(cluster_.Secrets().size(), 1U);
}

TEST_F(CreationTest, L7_an_introduction_token_is_looked_after_at_half_its_time_and_not_more_often) {
  EXPECT_EQ(TokenCheckAfter(std::chrono::minutes(30)), std::chrono::minutes(15));
  EXPECT_EQ(TokenCheckAfter(std::chrono::seconds(10)), std::chrono::seconds(30))
      << "Nomad cuts its tokens to seconds";
}

}  // namespace
}  // namespace nomad_harvester::scaling
