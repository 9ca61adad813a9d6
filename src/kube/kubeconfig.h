// SPDX-License-Identifier: Apache-2.0
// Reads one context of a kubeconfig file.
#ifndef NOMAD_HARVESTER_SRC_KUBE_KUBECONFIG_H_
#define NOMAD_HARVESTER_SRC_KUBE_KUBECONFIG_H_

#include <optional>
#include <string>

#include "nomad_harvester/base/secret.h"
#include "nomad_harvester/http/connection_parts.h"
#include "nomad_harvester/kube/object.h"

namespace nomad_harvester::kube {

inline constexpr char kKubeconfigKey[] = "harvester_kubeconfig";
inline constexpr char kKubeconfigContextKey[] = "harvester_kubeconfig_context";

// The entries that a context names, as written in the file.
struct KubeconfigContext {
  std::string directory;  // base of relative paths
  std::string cluster_name;
  std::string user_name;
  Json cluster;  // an object
  Json user;     // an object; empty if the context names no user
};

// Reads the file (YAML or JSON) and finds the context: `context_name`, or the file's
// current-context. On problems, returns nullopt and notes them under the two keys above.
std::optional<KubeconfigContext> LoadKubeconfig(const std::string& path,
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
