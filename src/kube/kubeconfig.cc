// SPDX-License-Identifier: Apache-2.0
#include "kubeconfig.h"

#include <utility>
#include <vector>

#include "nomad_harvester/base/file.h"
#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/parse.h"

#include "pem.h"
#include "yaml.h"

namespace nomad_harvester::kube {
namespace {

std::string DirectoryOf(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

// The member `member` of the list's entry with that name; null if there is none. As in client-go,
// the first entry of a name is used.
const Json* FindEntry(const Json& file, const char* list_name, const std::string& name,
                      const char* member) {
  const Json* list = base::FindMember(file, list_name);
  if (list == nullptr || !list->is_array()) return nullptr;
  for (const Json& entry : *list) {
    if (base::GetString(entry, "name") == name) return base::FindMember(entry, member);
  }
  return nullptr;
}

std::vector<std::string> ContextNames(const Json& file) {
  std::vector<std::string> names;
  const Json* list = base::FindMember(file, "contexts");
  if (list == nullptr || !list->is_array()) return names;
  for (const Json& entry : *list) {
    if (const auto name = base::FindString(entry, "name")) names.push_back(*name);
  }
  return names;
}

std::string UnknownContext(const Json& file, const std::string& name) {
  const std::vector<std::string> names = ContextNames(file);
  std::string text = "the kubeconfig has no context \"" + name + "\"";
  if (const auto near = base::NearestName(name, names)) {
    return text + "; did you mean \"" + *near + "\"?";
  }
  std::string list;
  for (const std::string& known : names) list += (list.empty() ? "" : ", ") + known;
  return text + (list.empty() ? "" : "; it has: " + list);
}

std::optional<Json> ReadKubeconfig(const std::string& path, Problems& problems) {
  const absl::StatusOr<std::string> text = base::ReadFile(path);
  if (!text.ok()) {
    problems.Add(kKubeconfigKey, base::Message(text.status()));
    return std::nullopt;
  }
  absl::StatusOr<Json> file = ParseYaml(*text);
  if (!file.ok()) {
    problems.Add(kKubeconfigKey, path + " cannot be parsed: " + base::Message(file.status()));
    return std::nullopt;
  }
  if (!file->is_object() || base::FindMember(*file, "contexts") == nullptr ||
      base::FindMember(*file, "clusters") == nullptr) {
    problems.Add(kKubeconfigKey, path + " is not a kubeconfig: it has no contexts or no clusters");
    return std::nullopt;
  }
  return *std::move(file);
}

// A boolean of YAML 1.2 or JSON.
bool ReadBool(const Json& entry, const char* member, const std::string& entry_name,
              Problems& problems) {
  const Json* value = base::FindMember(entry, member);
  if (value == nullptr || value->is_null()) return false;
  if (value->is_boolean()) return value->get<bool>();
  const std::string text = value->is_string() ? base::AsciiLower(value->get<std::string>()) : "";
  if (text != "true" && text != "false") {
    problems.Add(kKubeconfigKey, entry_name + "." + member + " must be true or false");
  }
  return text == "true";
}

}  // namespace

std::optional<KubeconfigContext> LoadKubeconfig(const std::string& path,
                                                const std::string& context_name,
                                                Problems& problems) {
  const std::optional<Json> file = ReadKubeconfig(path, problems);
  if (!file) return std::nullopt;
  const std::string name =
      context_name.empty() ? base::GetString(*file, "current-context") : context_name;
  if (name.empty()) {
    problems.Add(kKubeconfigContextKey, "required: the kubeconfig has no current-context");
    return std::nullopt;
  }
  const Json* context = FindEntry(*file, "contexts", name, "context");
  if (context == nullptr) {
    problems.Add(context_name.empty() ? kKubeconfigKey : kKubeconfigContextKey,
                 UnknownContext(*file, name));
    return std::nullopt;
  }
  KubeconfigContext found;
  found.directory = DirectoryOf(path);
  found.cluster_name = base::GetString(*context, "cluster");
  found.user_name = base::GetString(*context, "user");
  const Json* cluster = FindEntry(*file, "clusters", found.cluster_name, "cluster");
  if (cluster == nullptr || !cluster->is_object()) {
    problems.Add(kKubeconfigKey, "context \"" + name + "\" names the cluster \"" +
                                     found.cluster_name + "\", which the file does not have");
    return std::nullopt;
  }
  found.cluster = *cluster;
  found.user = Json::object();
  if (found.user_name.empty()) return found;
  const Json* user = FindEntry(*file, "users", found.user_name, "user");
  if (user == nullptr) {
    problems.Add(kKubeconfigKey, "context \"" + name + "\" names the user \"" + found.user_name +
                                     "\", which the file does not have");
    return std::nullopt;
  }
  if (user->is_object()) {
    found.user = *user;
  } else if (!user->is_null()) {
    problems.Add(kKubeconfigKey, "user \"" + found.user_name + "\" must be a map");
    return std::nullopt;
  }
  return found;
}

ClusterSettings ReadCluster(const KubeconfigContext& context, bool want_ca, Problems& problems) {
  const std::string entry = "cluster \"" + context.cluster_name + "\"";
  ClusterSettings settings;
  settings.server = ReadText(context.cluster, entry, "server", problems);
  settings.tls_server_name = ReadText(context.cluster, entry, "tls-server-name", problems);
  settings.proxy_url = ReadText(context.cluster, entry, "proxy-url", problems);
  settings.skip_verify = ReadBool(context.cluster, "insecure-skip-tls-verify", entry, problems);
  if (want_ca) {
    settings.ca_pem = ReadPemMember(context, context.cluster, entry, "certificate-authority",
                                    /*private_key=*/false, problems);
  }
  return settings;
}

std::string ResolvePath(const KubeconfigContext& context, const std::string& path) {
  return path.empty() || path.front() == '/' ? path : context.directory + path;
}

std::string ReadText(const Json& entry, const std::string& entry_name, const std::string& member,
                     Problems& problems) {
  const Json* value = base::FindMember(entry, member);
  if (value == nullptr || value->is_null()) return "";
  if (!value->is_string()) {
    problems.Add(kKubeconfigKey, entry_name + "." + member + " must be a text");
    return "";
  }
  return value->get<std::string>();
}

std::string ReadPemMember(const KubeconfigContext& context, const Json& entry,
                          const std::string& entry_name, const std::string& member,
                          bool private_key, Problems& problems) {
  const PemKind kind = private_key ? PemKind::kPrivateKey : PemKind::kCertificate;
  const std::string data = ReadText(entry, entry_name, member + "-data", problems);
  const std::string path = ReadText(entry, entry_name, member, problems);
  if (data.empty() && path.empty()) return "";
  absl::StatusOr<std::string> pem =
      data.empty() ? ReadPemFile(ResolvePath(context, path), kind) : DecodePem(data, kind);
  if (pem.ok()) return *std::move(pem);
  problems.Add(kKubeconfigKey, entry_name + "." + member + (data.empty() ? "" : "-data") + ": " +
                                   base::Message(pem.status()));
  return "";
}

}  // namespace nomad_harvester::kube
