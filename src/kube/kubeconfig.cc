// SPDX-License-Identifier: Apache-2.0
#include "kubeconfig.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

#include "nomad_harvester/base/file.h"
#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/parse.h"

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"
#include "yaml.h"

namespace nomad_harvester::kube {
namespace {

constexpr const char* kLists[] = {"contexts", "clusters", "users"};
constexpr char kDirectory[] = "directory of the file";  // added to each entry

// Returns the list's entry with that name that has `member`; null if there is none. As in
// client-go, the first entry of several files is used.
const Json* FindEntry(const Json& file, const char* list_name, const std::string& name,
                      const char* member) {
  const Json* list = base::FindMember(file, list_name);
  if (list == nullptr || !list->is_array()) return nullptr;
  for (const Json& entry : *list) {
    if (base::GetString(entry, "name") != name) continue;
    return base::FindMember(entry, member) == nullptr ? nullptr : &entry;
  }
  return nullptr;
}

std::string UnknownContext(const Json& file, const std::string& name) {
  std::vector<std::string> names;
  for (const Json& entry : *base::FindMember(file, "contexts")) {
    if (const auto known = base::FindString(entry, "name")) names.push_back(*known);
  }
  const std::string text = "the kubeconfig has no context \"" + name + "\"";
  if (const auto near = base::NearestName(name, names)) {
    return text + "; did you mean \"" + *near + "\"?";
  }
  return text + (names.empty() ? "" : "; it has: " + absl::StrJoin(names, ", "));
}

// Adds what a file has and the others before it have not: its entries, its current-context.
// client-go refuses a file in which a name is no text, or is given twice
// (kubernetes/client-go:tools/clientcmd/api/v1/conversion.go).
absl::Status Merge(const Json& file, const std::string& path, Json* merged) {
  for (const char* const list_name : kLists) {
    const Json* const list = base::FindMember(file, list_name);
    if (list == nullptr) continue;
    Json& all = (*merged)[list_name];
    if (all.is_null()) all = Json::array();
    if (!list->is_array()) continue;
    std::set<std::string> names;
    for (Json entry : *list) {
      const std::string name = base::GetString(entry, "name");
      if (!names.insert(name).second) {
        return base::InvalidArgument(path + ": " + list_name + ": the name \"" + name +
                                     "\" is given twice; remove or rename one of them");
      }
      if (!entry.is_object()) continue;
      entry[kDirectory] = std::filesystem::path(path).parent_path().string();
      all.push_back(std::move(entry));
    }
  }
  std::string current = base::GetString(*merged, "current-context");
  if (current.empty()) current = base::GetString(file, "current-context");
  (*merged)["current-context"] = std::move(current);
  return absl::OkStatus();
}

absl::StatusOr<Json> ReadKubeconfig(const std::string& value) {
  const std::vector<std::string> paths = KubeconfigPaths(value);
  Json merged;
  for (const std::string& path : paths) {
    const absl::StatusOr<std::string> text = base::ReadFile(path);
    if (absl::IsNotFound(text.status()) && paths.size() > 1) continue;
    if (!text.ok()) return text.status();
    if (text->empty()) continue;
    const absl::StatusOr<Json> file = ParseYaml(*text);
    if (!file.ok()) return base::Annotate(file.status(), path + " cannot be parsed");
    NH_RETURN_IF_ERROR(Merge(*file, path, &merged));
  }
  if (base::FindMember(merged, "contexts") == nullptr ||
      base::FindMember(merged, "clusters") == nullptr) {
    return base::InvalidArgument(value + " is not a kubeconfig: it has no contexts or no clusters");
  }
  return merged;
}

// A cluster or user. Problems are noted with the entry's kind and name.
class Entry {
 public:
  Entry(const Json& json, std::string label, const std::string& directory, http::Problems& problems)
      : json_(json), label_(std::move(label)), directory_(directory), problems_(problems) {}

  void Problem(std::string_view text) const {
    problems_.Add(kKubeconfigKey, label_ + std::string(text));
  }

  // Returns a string member, or an empty string if it is absent. Any YAML scalar is a string; a
  // JSON number is not.
  std::string Text(const std::string& member) const {
    const Json* value = base::FindMember(json_, member);
    if (value == nullptr || value->is_null()) return "";
    if (!value->is_string()) Problem("." + member + " must be a text");
    return value->is_string() ? value->get<std::string>() : "";
  }

  std::string Path(const std::string& member) const {
    const std::string path = Text(member);
    return path.empty() ? "" : (std::filesystem::path(directory_) / path).string();
  }

  // Returns a boolean of YAML 1.2 or JSON. client-go also takes yes and on for true
  // (kubernetes-sigs/yaml:goyaml.v2/resolve.go).
  bool Flag(const std::string& member) const {
    const Json* value = base::FindMember(json_, member);
    if (value == nullptr || value->is_null()) return false;
    if (value->is_boolean()) return value->get<bool>();
    const std::string text = value->is_string() ? base::AsciiLower(value->get<std::string>()) : "";
    if (text != "true" && text != "false") Problem("." + member + " must be true or false");
    return text == "true";
  }

  // Returns, for example, "certificate-authority" from data or from a file; data takes precedence,
  // as in client-go. Empty if both are absent.
  std::string Pem(const std::string& member, http::PemKind kind) const {
    const std::string data = Text(member + "-data");
    const std::string path = Path(member);
    if (data.empty() && path.empty()) return "";
    absl::StatusOr<std::string> pem =
        data.empty() ? http::ReadPemFile(path, kind) : http::DecodePem(data, kind);
    if (pem.ok()) return *std::move(pem);
    Problem("." + member + (data.empty() ? "" : "-data") + ": " + base::Message(pem.status()));
    return "";
  }

 private:
  const Json& json_;
  const std::string label_;
  const std::string& directory_;
  http::Problems& problems_;
};

bool Has(const Json& user, const std::string& member) {
  const Json* value = base::FindMember(user, member);
  if (value == nullptr || value->is_null()) return false;
  return !value->is_string() || !base::GetString(user, member).empty();
}

// Refuses login methods that run a program or impersonate a user. If one were ignored, the plugin
// would connect as another identity.
void RefuseUnsupported(const Json& user, const Entry& entry) {
  for (const auto& [member, what] : {std::pair("exec", " uses an exec plugin"),
                                     std::pair("auth-provider", " uses an auth-provider")}) {
    if (!Has(user, member)) continue;
    entry.Problem(std::string(what) +
                  ", which is not supported: use auth_token_file, or a kubeconfig with a token or "
                  "a client certificate");
  }
  for (const std::string member : {"as", "as-uid", "as-groups", "as-user-extra"}) {
    if (Has(user, member)) entry.Problem("." + member + ": impersonation is not supported");
  }
}

}  // namespace

std::vector<std::string> KubeconfigPaths(const std::string& value) {
  std::error_code unreadable;
  if (std::filesystem::exists(value, unreadable)) return {value};
  return absl::StrSplit(base::ToAbsl(value), ':', absl::SkipEmpty());
}

std::optional<KubeconfigContext> LoadKubeconfig(const std::string& paths,
                                                const std::string& context_name,
                                                http::Problems& problems) {
  const auto fail = [&](std::string_view text, std::string_view key = kKubeconfigKey) {
    problems.Add(key, text);
    return std::nullopt;
  };
  const absl::StatusOr<Json> file = ReadKubeconfig(paths);
  if (!file.ok()) return fail(base::Message(file.status()));
  const std::string name =
      context_name.empty() ? base::GetString(*file, "current-context") : context_name;
  if (name.empty()) {
    return fail("required: the kubeconfig has no current-context", kKubeconfigContextKey);
  }
  const Json* entry = FindEntry(*file, "contexts", name, "context");
  if (entry == nullptr) {
    return fail(UnknownContext(*file, name),
                context_name.empty() ? kKubeconfigKey : kKubeconfigContextKey);
  }
  const auto missing = [&](const char* kind, const std::string& wanted) {
    return fail("context \"" + name + "\" names the " + kind + " \"" + wanted +
                "\", which the file does not have");
  };
  KubeconfigContext found;
  found.cluster_name = base::GetString((*entry)["context"], "cluster");
  found.user_name = base::GetString((*entry)["context"], "user");
  found.user = Json::object();
  entry = FindEntry(*file, "clusters", found.cluster_name, "cluster");
  if (entry == nullptr || !(*entry)["cluster"].is_object()) {
    return missing("cluster", found.cluster_name);
  }
  found.cluster = (*entry)["cluster"];
  found.cluster_directory = base::GetString(*entry, kDirectory);
  if (found.user_name.empty()) return found;
  entry = FindEntry(*file, "users", found.user_name, "user");
  if (entry == nullptr) return missing("user", found.user_name);
  const Json& user = (*entry)["user"];
  if (user.is_null()) return found;
  if (!user.is_object()) return fail("user \"" + found.user_name + "\" must be a map");
  found.user = user;
  found.user_directory = base::GetString(*entry, kDirectory);
  return found;
}

ClusterSettings ReadCluster(const KubeconfigContext& context, bool want_ca,
                            http::Problems& problems) {
  const Entry entry(context.cluster, "cluster \"" + context.cluster_name + "\"",
                    context.cluster_directory, problems);
  const bool skip_verify = entry.Flag("insecure-skip-tls-verify");
  // client-go also refuses this (kubernetes/client-go:transport/transport.go, TLSConfigFor): the CA
  // would have no effect.
  if (want_ca && skip_verify &&
      (Has(context.cluster, "certificate-authority") ||
       Has(context.cluster, "certificate-authority-data"))) {
    entry.Problem(
        " has a certificate-authority and insecure-skip-tls-verify, which turns it off: remove one "
        "of them");
  }
  return {.server = entry.Text("server"),
          .ca_pem = want_ca ? entry.Pem("certificate-authority", http::PemKind::kCertificate) : "",
          .tls_server_name = entry.Text("tls-server-name"),
          .skip_verify = skip_verify,
          .proxy_url = entry.Text("proxy-url")};
}

UserCredentials ReadUser(const KubeconfigContext& context, bool want_certificate,
                         http::Problems& problems) {
  const Json& user = context.user;
  const Entry entry(user, "user \"" + context.user_name + "\"", context.user_directory, problems);
  RefuseUnsupported(user, entry);

  UserCredentials credentials;
  credentials.token = base::Secret(entry.Text("token"));
  credentials.token_file = entry.Path("tokenFile");
  credentials.username = entry.Text("username");
  credentials.password = base::Secret(entry.Text("password"), kKubeconfigKey);
  // client-go also refuses these (kubernetes/client-go:tools/clientcmd/validation.go): the server
  // would choose which of two identities applies.
  const bool token = !credentials.token.empty() || !credentials.token_file.empty();
  if (token && !credentials.username.empty()) {
    entry.Problem(" has a token and a username: only one can be sent");
  }
  if (credentials.username.empty() && !credentials.password.empty()) {
    entry.Problem(" has a password without a username");
  }
  if (!want_certificate) return credentials;

  const bool certificate = Has(user, "client-certificate") || Has(user, "client-certificate-data");
  const bool key = Has(user, "client-key") || Has(user, "client-key-data");
  if (certificate != key) {
    entry.Problem(key ? " has a client-key without a client-certificate"
                      : " has a client-certificate without a client-key");
    return credentials;
  }
  credentials.client_cert_pem = entry.Pem("client-certificate", http::PemKind::kCertificate);
  credentials.client_key_pem =
      base::Secret(entry.Pem("client-key", http::PemKind::kPrivateKey), kKubeconfigKey);
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
