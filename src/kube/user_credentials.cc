// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>

#include "nomad_harvester/base/json.h"

#include "kubeconfig.h"

namespace nomad_harvester::kube {
namespace {

bool Has(const Json& entry, std::string_view member) {
  const Json* value = base::FindMember(entry, member);
  if (value == nullptr || value->is_null()) return false;
  const auto* text = value->get_ptr<const Json::string_t*>();
  return text == nullptr || !text->empty();
}

// Login methods that run a program or impersonate a user. If one were ignored, the plugin would
// connect as another identity.
void RefuseUnsupported(const Json& user, const std::string& entry, Problems& problems) {
  if (Has(user, "exec")) {
    problems.Add(kKubeconfigKey, entry + " uses an exec plugin, which is not supported: " +
                                     "use auth_token_file, or a kubeconfig with a token or " +
                                     "a client certificate");
  }
  if (Has(user, "auth-provider")) {
    problems.Add(kKubeconfigKey, entry + " uses an auth-provider, which is not " +
                                     "supported: use auth_token_file, or a kubeconfig with a " +
                                     "token or a client certificate");
  }
  constexpr const char* kImpersonation[] = {"as", "as-uid", "as-groups", "as-user-extra"};
  for (const char* member : kImpersonation) {
    if (!Has(user, member)) continue;
    problems.Add(kKubeconfigKey, entry + "." + member + ": impersonation is not supported");
  }
}

// client-go refuses these, too (kubernetes/client-go:tools/clientcmd/validation.go): which of two
// identities applies would depend on the server.
void RefuseAmbiguous(const UserCredentials& user, const std::string& entry, Problems& problems) {
  const bool token = !user.token.empty() || !user.token_file.empty();
  if (token && !user.username.empty()) {
    problems.Add(kKubeconfigKey, entry + " has a token and a username: only one can be sent");
  }
  if (user.username.empty() && !user.password.empty()) {
    problems.Add(kKubeconfigKey, entry + " has a password without a username");
  }
}

}  // namespace

UserCredentials ReadUser(const KubeconfigContext& context, bool want_certificate,
                         Problems& problems) {
  const std::string entry = "user \"" + context.user_name + "\"";
  const Json& user = context.user;
  RefuseUnsupported(user, entry, problems);

  UserCredentials credentials;
  credentials.token = base::Secret(ReadText(user, entry, "token", problems));
  credentials.token_file = ResolvePath(context, ReadText(user, entry, "tokenFile", problems));
  credentials.username = ReadText(user, entry, "username", problems);
  credentials.password = base::Secret(ReadText(user, entry, "password", problems));
  RefuseAmbiguous(credentials, entry, problems);
  if (!want_certificate) return credentials;

  const auto given = [&user](const std::string& member) {
    return Has(user, member) || Has(user, member + "-data");
  };
  if (given("client-certificate") != given("client-key")) {
    problems.Add(kKubeconfigKey,
                 entry + (given("client-key") ? " has a client-key without a client-certificate"
                                              : " has a client-certificate without a client-key"));
    return credentials;
  }
  credentials.client_cert_pem = ReadPemMember(context, user, entry, "client-certificate",
                                              /*private_key=*/false, problems);
  credentials.client_key_pem = base::Secret(
      ReadPemMember(context, user, entry, "client-key", /*private_key=*/true, problems));
  return credentials;
}

bool HoldsCredentials(const KubeconfigContext& context) {
  constexpr const char* kMembers[] = {"token",        "tokenFile",
                                      "username",     "client-certificate",
                                      "exec",         "client-certificate-data",
                                      "auth-provider"};
  return std::any_of(std::begin(kMembers), std::end(kMembers),
                     [&context](const char* member) { return Has(context.user, member); });
}

}  // namespace nomad_harvester::kube
