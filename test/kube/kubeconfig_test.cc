// SPDX-License-Identifier: Apache-2.0
// The kubeconfig file: the context, its cluster and user, and the problems it can have.
#include "kubeconfig.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "kube/kubeconfig_fixture.h"

namespace nomad_harvester::kube {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr char kTwoContexts[] = R"(
apiVersion: v1
kind: Config
current-context: staging
preferences: {}
contexts:
- name: production
  context: {cluster: prod, user: robot, namespace: ignored}
- name: staging
  context:
    cluster: stage
    user: human
clusters:
- name: prod
  cluster: {server: "https://prod:6443"}
- name: stage
  cluster:
    server: https://stage/k8s/clusters/local
users:
- name: robot
  user: {token: robot-token}
- name: human
  user: {token: human-token}
)";

class KubeconfigFile : public ConnectionFixture {
 protected:
  KubeconfigFile() { UseKubeconfig(kTwoContexts); }
};

TEST_F(KubeconfigFile, the_current_context_counts) {
  const Connection connection = Resolved();
  EXPECT_EQ(connection.curl.base_url, "https://stage/k8s/clusters/local");
  EXPECT_EQ(TokenOf(connection), "human-token");
}

TEST_F(KubeconfigFile, a_context_of_the_options_wins) {
  options_.kubeconfig_context = "production";
  const Connection connection = Resolved();
  EXPECT_EQ(connection.curl.base_url, "https://prod:6443");
  EXPECT_EQ(TokenOf(connection), "robot-token");
}

TEST_F(KubeconfigFile, JSON_is_a_kubeconfig_as_well) {
  UseKubeconfig(R"({"current-context":"m","contexts":[{"name":"m","context":{"cluster":"c",
      "user":"u"}}],"clusters":[{"name":"c","cluster":{"server":"https://vip",
      "insecure-skip-tls-verify":true}}],"users":[{"name":"u","user":{"token":"t"}}]})");
  const Connection connection = Resolved();
  EXPECT_EQ(connection.curl.base_url, "https://vip");
  EXPECT_TRUE(connection.curl.tls.skip_verify);
  EXPECT_EQ(TokenOf(connection), "t");
}

// As by client-go (tools/clientcmd/api/v1/conversion.go), whether the entries are used or not.
TEST_F(KubeconfigFile, a_name_that_is_given_twice_is_refused) {
  const std::string lists[] = {"contexts: [{name: m, context: {cluster: c}}]\n",
                               "clusters: [{name: c, cluster: {server: 'https://one'}}]\n",
                               "users: [{name: a}]\n"};
  for (const std::string& twice : lists) {
    std::string text = "current-context: m\n";
    for (const std::string& list : lists) {
      const std::string entry = list.substr(list.find('{'), list.size() - list.find('{') - 2);
      text += &list == &twice ? list.substr(0, list.find(']')) + ", " + entry + "]\n" : list;
    }
    UseKubeconfig(text);
    EXPECT_THAT(
        Problems(),
        AllOf(HasSubstr("/kubeconfig: " + twice.substr(0, twice.find(':')) + ": the name \""),
              testing::EndsWith("\" is given twice; remove or rename one of them")));
  }
}

// kubernetes/client-go:tools/clientcmd/loader.go, Load; compared with 0.33.7.
class KubeconfigList : public ConnectionFixture {
 protected:
  std::string Write(const std::string& name, const std::string& text) const {
    return dir_.WriteFile(name, text);
  }
  // Paths with ":" between them.
  void Use(const std::vector<std::string>& paths) {
    options_.kubeconfig_path = absl::StrJoin(paths, ":");
  }

  const std::string first_ = Write(
      "a/k",
      "current-context: m\ncontexts: [{name: m, context: {cluster: c, user: u}}]\n"
      "clusters: [{name: c, cluster: {server: 'https://a', certificate-authority: ca.pem}}]\n");
  const std::string second_ =
      Write("b/k",
            "current-context: o\ncontexts: [{name: o, context: {cluster: c, user: u}}, {name: m, "
            "context: {cluster: gone, user: gone}}]\n"
            "clusters: [{name: c, cluster: {server: 'https://b', tls-server-name: x}}]\n"
            "users: [{name: u, user: {tokenFile: token}}]\n");
};

TEST_F(KubeconfigList, the_first_file_that_has_an_entry_counts) {
  Write("a/ca.pem", kCaPem);
  Write("b/token", "t");
  Use({first_, second_});
  const Connection connection = Resolved();
  EXPECT_EQ(connection.curl.base_url, "https://a");
  EXPECT_EQ(connection.curl.tls.ca_pem, kCaPem) << "relative to its own file";
  EXPECT_EQ(connection.curl.tls.server_name, "") << "entries are not mixed";
  EXPECT_EQ(TokenOf(connection), "t") << "of the second file, and relative to it";
  Use({second_, first_});
  EXPECT_EQ(Resolved().curl.base_url, "https://b");
  options_.kubeconfig_context = "m";
  EXPECT_THAT(Problems(), HasSubstr("context \"m\" names the cluster \"gone\""));
}

TEST_F(KubeconfigList, files_that_are_missing_or_empty_are_left_out) {
  Write("b/token", "t");
  Use({dir_.Path("none"), "", Write("empty", ""), second_});
  EXPECT_EQ(Resolved().curl.base_url, "https://b");
  Use({dir_.Path("none"), dir_.Path("nothing")});
  EXPECT_THAT(Problems(), HasSubstr("is not a kubeconfig: it has no contexts"));
}

TEST_F(KubeconfigList, a_file_that_cannot_be_read_is_a_problem_of_all) {
  Use({second_, Write("bad", "a: [\n")});
  EXPECT_THAT(Problems(), HasSubstr("/bad cannot be parsed"));
  Use({second_, Write("twice", "users: [{name: a}, {name: a}]\n")});
  EXPECT_THAT(Problems(), HasSubstr("/twice: users: the name \"a\" is given twice"));
}

TEST_F(KubeconfigList, a_file_whose_name_has_a_colon_is_one_file) {
  Write("b/token", "t");
  Use({Write("x:y/k", Kubeconfig("{server: 'https://x'}", "{token: t}"))});
  EXPECT_EQ(Resolved().curl.base_url, "https://x");
}

TEST_F(KubeconfigFile, a_context_may_name_no_user) {
  UseKubeconfig(
      "current-context: m\ncontexts: [{name: m, context: {cluster: c}}]\n"
      "clusters: [{name: c, cluster: {server: 'https://one'}}]\n");
  const Connection connection = Resolved();
  EXPECT_EQ(connection.token, nullptr);
  EXPECT_THAT(connection.warnings, testing::ElementsAre(HasSubstr("no credentials")));
}

TEST_F(KubeconfigFile, a_user_may_be_null) {
  UseKubeconfig(Kubeconfig("{server: 'https://vip'}", "~"));
  EXPECT_EQ(Resolved().token, nullptr);
}

TEST_F(KubeconfigFile, an_unknown_context_names_the_nearest_one) {
  options_.kubeconfig_context = "prodction";
  EXPECT_EQ(Problems(),
            "harvester_kubeconfig_context: the kubeconfig has no context \"prodction\"; did you "
            "mean \"production\"?");
}

TEST_F(KubeconfigFile, an_unknown_context_that_is_near_none_names_them_all) {
  options_.kubeconfig_context = "x";
  EXPECT_EQ(
      Problems(),
      "harvester_kubeconfig_context: the kubeconfig has no context \"x\"; it has: production, "
      "staging");
}

TEST_F(KubeconfigFile, an_unknown_current_context_is_an_error_of_the_file) {
  UseKubeconfig("current-context: gone\ncontexts: []\nclusters: []\n");
  EXPECT_EQ(Problems(), "harvester_kubeconfig: the kubeconfig has no context \"gone\"");
}

TEST_F(KubeconfigFile, a_file_without_a_current_context_needs_the_option) {
  UseKubeconfig("contexts: []\nclusters: []\n");
  EXPECT_EQ(Problems(),
            "harvester_kubeconfig_context: required: the kubeconfig has no current-context");
}

TEST_F(KubeconfigFile, a_context_whose_cluster_or_user_is_missing_says_which) {
  UseKubeconfig(
      "current-context: m\ncontexts: [{name: m, context: {cluster: c, user: u}}]\n"
      "clusters: []\nusers: []\n");
  EXPECT_EQ(Problems(),
            "harvester_kubeconfig: context \"m\" names the cluster \"c\", which the file does not "
            "have");
  UseKubeconfig(
      "current-context: m\ncontexts: [{name: m, context: {cluster: c, user: u}}]\n"
      "clusters: [{name: c, cluster: {server: 'https://vip'}}]\n");
  EXPECT_EQ(
      Problems(),
      "harvester_kubeconfig: context \"m\" names the user \"u\", which the file does not have");
}

TEST_F(KubeconfigFile, an_entry_of_another_type_is_a_problem) {
  for (const char* text : {"current-context: m\ncontexts: x\nclusters: y\n",
                           "current-context: m\ncontexts: [7, [], {name: [m]}]\nclusters: []\n",
                           "current-context: m\ncontexts: [{name: m, context: x}]\nclusters: []\n",
                           "current-context: m\ncontexts: [{name: m}]\nclusters: []\n",
                           "current-context: m\ncontexts: [{name: m, context: {cluster: c}}]\n"
                           "clusters: [{name: c, cluster: x}]\n",
                           "current-context: m\ncontexts: [{name: m, context: {cluster: c}}]\n"
                           "clusters: [{name: c}]\n",
                           "current-context: [m]\ncontexts: []\nclusters: []\n"}) {
    UseKubeconfig(text);
    EXPECT_THAT(Problems(), StartsWith("harvester_kubeconfig")) << text;
  }
}

// Without an error, the plugin would connect anonymously.
TEST_F(KubeconfigFile, a_user_of_another_type_is_a_problem) {
  for (const char* user : {"sesame", "[token, sesame]"}) {
    UseKubeconfig(Kubeconfig("{server: 'https://vip'}", user));
    EXPECT_EQ(Problems(), "harvester_kubeconfig: user \"u\" must be a map") << user;
  }
}

TEST_F(KubeconfigFile, broken_YAML_names_file_and_line_and_nothing_of_its_content) {
  UseKubeconfig("users:\n- name: u\n  user: {token: sesame\n");
  EXPECT_THAT(Problems(), AllOf(StartsWith("harvester_kubeconfig: " + dir_.Path("kubeconfig") +
                                           " cannot be parsed: line "),
                                Not(HasSubstr("sesame"))));
}

TEST_F(KubeconfigFile, a_file_that_is_something_else_says_so) {
  for (const char* text : {"sesame", "a: b", "[]", "contexts: []", "clusters: []", "{}"}) {
    UseKubeconfig(text);
    EXPECT_EQ(Problems(), "harvester_kubeconfig: " + dir_.Path("kubeconfig") +
                              " is not a kubeconfig: it has no contexts or no clusters")
        << text;
  }
}

TEST_F(KubeconfigFile, a_file_that_is_missing_is_named) {
  options_.kubeconfig_path = dir_.Path("missing");
  EXPECT_THAT(Problems(), StartsWith("harvester_kubeconfig: " + dir_.Path("missing") + ": "));
}

TEST_F(KubeconfigFile, P2_a_device_a_directory_and_a_huge_file_are_problems) {
  const std::string huge =
      dir_.WriteFile("huge", std::string(kTwoContexts) + "#" + std::string(2'000'000, 'x'));
  for (const std::string& path : {std::string("/dev/zero"), std::string("/dev/stdin"), dir_.path(),
                                  huge, std::string("a\0b", 3)}) {
    options_.kubeconfig_path = path;
    EXPECT_THAT(Problems(), StartsWith("harvester_kubeconfig: ")) << path;
  }
}

TEST_F(KubeconfigFile, P2_binary_content_is_a_problem) {
  std::string bytes;
  for (int i = 0; i < 4096; ++i) bytes += static_cast<char>(i * 31 % 256);
  UseKubeconfig(bytes);
  EXPECT_THAT(Problems(), StartsWith("harvester_kubeconfig: " + dir_.Path("kubeconfig")));
}

TEST_F(KubeconfigFile, P2_any_cut_of_a_file_is_a_problem_or_a_connection_and_quotes_no_secret) {
  const std::string text = kTwoContexts;
  for (std::size_t length = 0; length < text.size(); ++length) {
    UseKubeconfig(text.substr(0, length));
    const auto connection = ResolveConnection(options_);
    if (connection.ok()) continue;
    EXPECT_EQ(connection.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(connection.status().ToString(), Not(HasSubstr("-token"))) << length;
  }
}

TEST_F(KubeconfigFile, P2_a_file_changed_at_any_byte_is_a_problem_or_a_connection) {
  const std::string text = Kubeconfig("{server: 'https://vip', tls-server-name: x}", "{token: t}");
  for (std::size_t at = 0; at < text.size(); ++at) {
    for (const char c : {'\0', ':', '"'}) {
      std::string changed = text;
      changed[at] = c;
      UseKubeconfig(changed);
      const auto connection = ResolveConnection(options_);
      if (!connection.ok()) {
        EXPECT_EQ(connection.status().code(), absl::StatusCode::kInvalidArgument) << changed;
      }
    }
  }
}

}  // namespace
}  // namespace nomad_harvester::kube
