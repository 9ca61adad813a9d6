// SPDX-License-Identifier: Apache-2.0
// A resolved connection to servers on the loopback: where its token goes, and where not.
#include <memory>
#include <string>

#include "nomad_harvester/http/curl_transport.h"
#include "nomad_harvester/http/decorators.h"
#include "nomad_harvester/kube/client.h"
#include "nomad_harvester/kube/observed.h"
#include "nomad_harvester/runtime/clock.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "http/loopback_server.h"
#include "http/test_certificates.h"
#include "kube/kubeconfig_fixture.h"
#include "kube/replies.h"

namespace nomad_harvester::kube {
namespace {

using absl::StatusCode;
using support::IsOk;
using support::StatusIs;
using testing::Eq;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Optional;
using testing::SizeIs;

constexpr char kVm[] = R"({"metadata":{"name":"web-1"}})";

class KubeServer : public ConnectionFixture {
 protected:
  KubeServer() {
    for (const char* name : {"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY",
                             "no_proxy", "NO_PROXY"}) {
      environment_.Unset(name);
    }
  }

  // Over TLS.
  std::unique_ptr<http::LoopbackServer> Serve() const {
    http::LoopbackOptions options;
    options.tls = ca_.Issue("IP:127.0.0.1");
    return std::make_unique<http::LoopbackServer>(Reply(), options);
  }
  static http::ServerReply Reply() {
    http::ServerReply reply;
    reply.body = kVm;
    return reply;
  }
  // The members of a kubeconfig's cluster, including its CA.
  std::string Cluster(const std::string& url) const {
    return "{server: '" + url + "', certificate-authority-data: " + base::Base64Encode(ca_.pem()) +
           "}";
  }

  // Assembled as in the program.
  absl::StatusOr<Observed> GetVm() const {
    const auto connection = ResolveConnection(options_);
    NH_RETURN_IF_ERROR(connection);
    NH_ASSIGN_OR_RETURN(std::shared_ptr<http::HttpTransport> transport,
                        http::MakeCurlTransport(connection->curl));
    if (connection->token != nullptr) {
      transport = http::WithToken(std::move(transport), connection->token,
                                  {.name = "Authorization", .prefix = "Bearer "});
    }
    return KubeClient(std::move(transport)).Get(context_, kVirtualMachines, "default", "web-1");
  }
  static std::optional<std::string> Authorization(const http::LoopbackServer& server) {
    return server.requests().at(0).headers.Find("Authorization");
  }

  const http::TestCa ca_;
  const std::unique_ptr<runtime::Clock> clock_ = runtime::MakeSystemClock();
  const runtime::Context context_ = runtime::Context::Background(*clock_);
};

TEST_F(KubeServer, a_kubeconfigs_token_is_sent_over_TLS_that_its_CA_vouches_for) {
  const auto server = Serve();
  UseKubeconfig(Kubeconfig(Cluster(server->url() + "/k8s/clusters/local"), "{token: sesame}"));
  const auto vm = GetVm();
  ASSERT_THAT(vm, IsOk());
  EXPECT_EQ(vm->object, Json::parse(kVm));
  EXPECT_THAT(Authorization(*server), Optional(Eq("Bearer sesame")));
  EXPECT_EQ(server->requests().at(0).target,
            "/k8s/clusters/local/apis/kubevirt.io/v1/namespaces/default/virtualmachines/web-1");
}

TEST_F(KubeServer, a_server_of_another_CA_gets_nothing) {
  http::LoopbackOptions foreign;
  foreign.tls = http::TestCa("other").Issue("IP:127.0.0.1");
  const http::LoopbackServer server(Reply(), foreign);
  UseKubeconfig(Kubeconfig(Cluster(server.url()), "{token: sesame}"));
  EXPECT_THAT(GetVm(), StatusIs(StatusCode::kFailedPrecondition, Not(HasSubstr("sesame"))));
  EXPECT_THAT(server.requests(), IsEmpty());
}

TEST_F(KubeServer, a_kubeconfigs_token_does_not_reach_the_server_of_another_port) {
  const auto own = Serve();
  const auto other = Serve();
  UseKubeconfig(Kubeconfig(Cluster(own->url()), "{token: sesame}"));
  options_.url = other->url();
  EXPECT_THAT(GetVm(), IsOk());
  EXPECT_EQ(Authorization(*other), std::nullopt);
  EXPECT_EQ(own->connections(), 0);
}

// The token would go in the clear to whoever answers there.
TEST_F(KubeServer, a_kubeconfigs_token_for_https_does_not_reach_the_same_port_by_http) {
  const http::LoopbackServer server(Reply());
  const std::string https = "https" + server.url().substr(4);
  UseKubeconfig(Kubeconfig(Cluster(https), "{token: sesame}"));
  options_.url = server.url();
  EXPECT_THAT(Resolved().warnings,
              testing::Contains(HasSubstr("names another scheme, host or port")));
  EXPECT_THAT(GetVm(), IsOk());
  EXPECT_EQ(Authorization(server), std::nullopt);
}

TEST_F(KubeServer, a_redirect_is_not_followed_and_the_token_stays_here) {
  const http::LoopbackServer other(Reply());
  http::ServerReply redirect;
  redirect.status = 302;
  redirect.headers = {{"Location", other.url() + "/login?next=secret"}};
  const http::LoopbackServer server(redirect);
  options_.url = server.url();
  options_.token = base::Secret("sesame");
  EXPECT_THAT(GetVm(), StatusIs(StatusCode::kFailedPrecondition, HasSubstr("harvester_url")));
  EXPECT_EQ(other.connections(), 0);
}

TEST_F(KubeServer, a_rewritten_token_file_is_read_again_after_a_401) {
  http::ServerReply refused;
  refused.status = 401;
  refused.body = StatusBody(401, "Unauthorized", "Unauthorized");
  const http::LoopbackServer server([&](const http::ServerRequest& request) {
    if (request.headers.Find("Authorization") == "Bearer new-and-longer") return Reply();
    dir_.WriteFile("token", "new-and-longer");
    return refused;
  });
  options_.url = server.url();
  options_.token_file = dir_.WriteFile("token", "old");
  EXPECT_THAT(GetVm(), IsOk());
  EXPECT_THAT(server.requests(), SizeIs(2));
}

}  // namespace
}  // namespace nomad_harvester::kube
