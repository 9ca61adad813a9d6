// SPDX-License-Identifier: Apache-2.0
// Reads one context of a kubeconfig file.
#ifndef NOMAD_HARVESTER_SRC_KUBE_KUBECONFIG_H_
#define NOMAD_HARVESTER_SRC_KUBE_KUBECONFIG_H_

#include <optional>
#include <string>
#include <vector>

#include "nomad_harvester/base/secret.h"
#include "nomad_harvester/http/connection_parts.h"
#include "nomad_harvester/kube/object.h"

#include "nlohmann/json.hpp"

namespace nomad_harvester::kube {

inline constexpr char kKubeconfigKey[] = "harvester_kubeconfig";
inline constexpr char kKubeconfigContextKey[] = "harvester_kubeconfig_context";

// The entries that a context names, as written in the file. Directories are the base of relative
// paths.
struct KubeconfigContext {
  std::string cluster_directory;
  std::string user_directory;
  std::string cluster_name;
  std::string user_name;
  Json cluster;  // an object
  Json user;     // an object; empty if the context names no user
};

// The paths of a kubeconfig's value: one file, or several with ":" between them, as in KUBECONFIG.
std::vector<std::string> KubeconfigPaths(const std::string& value);

// Reads the files (YAML or JSON) and finds the context: `context_name`, or the current-context. Of
// several files those that are missing are ignored, and the first one with an entry or a
// current-context counts (kubernetes/client-go:tools/clientcmd/loader.go, Load). On problems,
// returns nullopt and notes them under the two keys above.
std::optional<KubeconfigContext> LoadKubeconfig(const std::string& paths,
                                                const std::string& context_name,
                                                http::Problems& problems);

struct ClusterSettings {
  std::string server;
  std::string ca_pem;
  std::string tls_server_name;
  bool skip_verify = false;
  std::string proxy_url;
};
// `want_ca` is false if another CA replaces the entry's, which then is neither read nor compared
// with insecure-skip-tls-verify.
ClusterSettings ReadCluster(const KubeconfigContext& context, bool want_ca,
                            http::Problems& problems);

struct UserCredentials {
  base::Secret token;
  std::string token_file;  // absolute, or relative to the working directory
  std::string client_cert_pem;
  base::Secret client_key_pem;
  std::string username;
  base::Secret password;
};
// `want_certificate` is false if another client certificate replaces the entry's, which is then not
// read.
UserCredentials ReadUser(const KubeconfigContext& context, bool want_certificate,
                         http::Problems& problems);
// True if the entry contains credentials of any kind, usable or not.
bool HoldsCredentials(const KubeconfigContext& context);

}  // namespace nomad_harvester::kube

#endif  // NOMAD_HARVESTER_SRC_KUBE_KUBECONFIG_H_
