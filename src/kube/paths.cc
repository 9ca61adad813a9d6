// SPDX-License-Identifier: Apache-2.0
#include "paths.h"

#include "nomad_harvester/base/encoding.h"
#include "nomad_harvester/base/status.h"

namespace nomad_harvester::kube {
namespace {

// Kubernetes' rule for path segments
// (kubernetes/kubernetes:staging/src/k8s.io/apimachinery/pkg/api/validation/path/name.go). "." and
// ".." matter most: URL libraries resolve them, so the request would address another path.
absl::Status CheckSegment(std::string_view what, const std::string& text) {
  if (text.empty() || text == "." || text == ".." ||
      text.find_first_of("/%") != std::string::npos) {
    return base::InvalidArgument("\"" + text + "\" cannot be a " + std::string(what));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> CollectionPath(const ResourceType& type, const std::string& ns) {
  std::string path = type.group.empty() ? "/api" : "/apis/" + std::string(type.group);
  path += "/" + std::string(type.version);
  if (!ns.empty()) {
    NH_RETURN_IF_ERROR(CheckSegment("namespace", ns));
    path += "/namespaces/" + base::UrlEscape(ns);
  }
  return path + "/" + std::string(type.plural);
}

absl::StatusOr<std::string> ObjectPath(const ResourceType& type, const std::string& ns,
                                       const std::string& name) {
  NH_ASSIGN_OR_RETURN(const std::string collection, CollectionPath(type, ns));
  NH_RETURN_IF_ERROR(CheckSegment("name", name));
  return collection + "/" + base::UrlEscape(name);
}

std::string Describe(const ResourceType& type, const std::string& ns, const std::string& name) {
  return std::string(type.kind) + " " + (ns.empty() ? name : ns + "/" + name);
}

std::string DescribeCollection(const ResourceType& type, const std::string& ns) {
  std::string text(type.kind);
  text += text.back() == 's' ? "es" : "s";
  return ns.empty() ? text : text + " in " + ns;
}

}  // namespace nomad_harvester::kube
