// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/base/time.h"
#include "nomad_harvester/kube/observed.h"

#include "kube/client_fixture.h"

namespace nomad_harvester::kube {
namespace {

using absl::StatusCode;
using support::IsOk;
using support::StatusIs;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr char kVm[] = R"({
    "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine",
    "metadata": {"name": "web-1", "namespace": "default", "uid": "u-1", "resourceVersion": "77",
                 "managedFields": [{"manager": "harvester"}],
                 "annotations": {"managedFields": "kept"}},
    "spec": {"runStrategy": "RerunOnFailure"}, "status": {"ready": true}})";

class KubeReads : public ClientFixture {
 protected:
  absl::StatusOr<Observed> GetVm() {
    return client_.Get(context_, kVirtualMachines, "default", "web-1");
  }
};

TEST_F(KubeReads, an_object_is_read_by_its_path) {
  transport_->Reply(200, kVm);
  const auto vm = GetVm();
  ASSERT_THAT(vm, IsOk());
  EXPECT_EQ(NameOf(vm->object), "web-1");
  EXPECT_EQ(ResourceVersionOf(vm->object), "77");
  EXPECT_EQ(vm->object["spec"]["runStrategy"], "RerunOnFailure");
  EXPECT_EQ(OnlyRequest().target, "/apis/kubevirt.io/v1/namespaces/default/virtualmachines/web-1");
  EXPECT_EQ(OnlyRequest().method, http::Method::kGet);
  EXPECT_EQ(OnlyRequest().effect, http::Effect::kRead);
  EXPECT_EQ(OnlyRequest().idempotency, http::Idempotency::kIdempotent);
  EXPECT_EQ(OnlyRequest().headers.Find("Accept"), "application/json");
  EXPECT_EQ(OnlyRequest().headers.Find("Content-Type"), std::nullopt);
  EXPECT_EQ(OnlyRequest().body, "");
  EXPECT_EQ(OnlyRequest().server_wait, base::Duration::zero());
  EXPECT_EQ(OnlyRequest().purpose, "get VirtualMachine default/web-1");
}

TEST_F(KubeReads, an_object_is_whole) {
  transport_->Reply(200, kVm);
  EXPECT_EQ(GetVm()->object, Json::parse(kVm));
}

TEST_F(KubeReads, the_core_group_has_a_path_of_its_own) {
  transport_->Reply(200, "{}");
  ASSERT_THAT(client_.Get(context_, kSecrets, "default", "web-1-cloudinit"), IsOk());
  EXPECT_EQ(OnlyRequest().target, "/api/v1/namespaces/default/secrets/web-1-cloudinit");
}

// "Now" is the API server's clock, never ours.
TEST_F(KubeReads, the_Date_of_the_reply_is_the_servers_time) {
  transport_->Reply(200, kVm, {{"date", "Sat, 21 Nov 2026 02:03:04 GMT"}});
  EXPECT_EQ(GetVm()->server_time, *base::ParseRfc3339("2026-11-21T02:03:04Z"));
}

TEST_F(KubeReads, a_reply_without_a_readable_Date_has_no_server_time) {
  transport_->Reply(200, kVm);
  EXPECT_EQ(GetVm()->server_time, std::nullopt);
  transport_->Reply(200, kVm, {{"Date", "yesterday"}});
  EXPECT_EQ(GetVm()->server_time, std::nullopt);
}

TEST_F(KubeReads, an_object_that_is_not_there_is_NOT_FOUND) {
  transport_->Reply(404, NotFoundBody());
  const auto vm = GetVm();
  EXPECT_THAT(vm, StatusIs(StatusCode::kNotFound, HasSubstr("get VirtualMachine default/web-1: ")));
  EXPECT_TRUE(kube::IsNotFound(vm.status()));
}

TEST_F(KubeReads, an_error_of_the_transport_is_passed_on_as_it_is) {
  transport_->Fail(base::Unavailable("no answer"));
  EXPECT_THAT(GetVm(), StatusIs(StatusCode::kUnavailable, "no answer"));
}

TEST_F(KubeReads, a_cancelled_context_sends_nothing) {
  const runtime::CancelSource source(context_);
  source.Cancel(runtime::CancelReason::kShutdown);
  EXPECT_THAT(client_.Get(source.context(), kVirtualMachines, "default", "web-1"),
              StatusIs(StatusCode::kCancelled));
  EXPECT_THAT(transport_->requests(), IsEmpty());
}

TEST_F(KubeReads, what_cannot_be_decoded_is_INTERNAL_and_not_quoted) {
  for (const char* body : {"", "sesame", "<html>sesame</html>", "[]", "null", "\"sesame\"", "7",
                           "{\"sesame\":", "{} sesame", "{\"a\":1e999}", "{\"a\":\"\xFF\"}"}) {
    transport_->Reply(200, body);
    EXPECT_THAT(GetVm(), StatusIs(StatusCode::kInternal,
                                  AllOf(HasSubstr("get VirtualMachine default/web-1: the reply"),
                                        HasSubstr("; check that harvester_url is the address of "
                                                  "the API"),
                                        Not(HasSubstr("sesame")))))
        << body;
  }
}

TEST_F(KubeReads, a_page_is_told_as_one_and_a_read_knows_that_another_server_answers) {
  transport_->Reply(200, "<!doctype html><title>Login</title>");
  const absl::Status status = GetVm().status();
  EXPECT_THAT(status, StatusIs(StatusCode::kInternal,
                               "get VirtualMachine default/web-1: the reply is an HTML page; check "
                               "that harvester_url is the address of the API"));
  ASSERT_TRUE(GetKubeError(status).has_value());
  EXPECT_EQ(GetKubeError(status)->http_status, 200);
  EXPECT_FALSE(IsRefused(status));
}

TEST_F(KubeReads, P2_a_bottomless_reply_is_INTERNAL) {
  transport_->Reply(200, "{\"a\":" + std::string(1'000'000, '['));
  EXPECT_THAT(GetVm(), StatusIs(StatusCode::kInternal, HasSubstr("nested deeper than 200 levels")));
}

TEST_F(KubeReads, an_object_of_a_megabyte_is_read) {
  const std::string data(1UL * 1024 * 1024, 'x');
  transport_->Reply(200, R"({"data":{"userdata":")" + data + "\"}}");
  EXPECT_EQ(GetVm()->object["data"]["userdata"].get_ref<const std::string&>().size(), data.size());
}

TEST_F(KubeReads, a_redirect_is_an_error_that_names_the_key_of_the_base_URL) {
  transport_->Reply(302, "", {{"Location", "https://vip/dashboard"}});
  EXPECT_THAT(GetVm(), StatusIs(StatusCode::kFailedPrecondition, HasSubstr("check harvester_url")));
}

TEST_F(KubeReads, a_success_without_an_object_is_an_error) {
  for (const int status : {200, 202, 204, 299}) {
    transport_->Reply(status, "");
    EXPECT_THAT(GetVm(), StatusIs(StatusCode::kInternal)) << status;
  }
}

// The request would address another object or the collection.
TEST_F(KubeReads, names_that_would_name_another_path_are_never_sent) {
  for (const char* name : {"", ".", "..", "a/b", "../secrets/x", "a%2Fb", "/"}) {
    EXPECT_THAT(client_.Get(context_, kVirtualMachines, "default", name),
                StatusIs(StatusCode::kInvalidArgument, HasSubstr("cannot be a name")))
        << name;
  }
  for (const char* ns : {".", "..", "a/b", "%2e"}) {
    EXPECT_THAT(client_.Get(context_, kVirtualMachines, ns, "web-1"),
                StatusIs(StatusCode::kInvalidArgument, HasSubstr("cannot be a namespace")))
        << ns;
  }
  EXPECT_THAT(transport_->requests(), IsEmpty());
}

TEST_F(KubeReads, other_characters_are_escaped) {
  transport_->Reply(200, "{}");
  ASSERT_THAT(client_.Get(context_, kVirtualMachines, "a b", "x?y#z\n"), IsOk());
  EXPECT_EQ(OnlyRequest().target,
            "/apis/kubevirt.io/v1/namespaces/a%20b/virtualmachines/x%3Fy%23z%0A");
}

}  // namespace
}  // namespace nomad_harvester::kube
